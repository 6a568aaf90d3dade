package ws

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

func frame(dst []byte, op opcode, payload []byte) []byte {
	at := len(dst)
	return endFrame(append(beginFrame(dst), payload...), at, op)
}

func TestHeadersAreThoseOfTheStandard(t *testing.T) {
	for _, c := range []struct {
		op   opcode
		size int
		head string
	}{
		{opText, 0, "8100"},
		{opText, 125, "817d"},
		{opText, 126, "817e007e"},
		{opText, 65535, "817effff"},
		{opText, 65536, "817f0000000000010000"},
		{opText, 1 << 20, "817f0000000000100000"},
		{opPing, 8, "8908"},
		{opPong, 125, "8a7d"},
		{opClose, 2, "8802"},
	} {
		payload := bytes.Repeat([]byte("x"), c.size)
		got := frame([]byte("before"), c.op, payload)
		want := append([]byte("before"), mustHex(t, c.head)...)
		want = append(want, payload...)
		if !bytes.Equal(got, want) {
			t.Errorf("op %d, %d bytes: header %x, want %s", c.op, c.size, got[6:min(len(got), 20)], c.head)
		}
	}
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestControlPayloadsAreCutToWhatTheStandardAllows(t *testing.T) {
	if b := appendControl(nil, opPong, make([]byte, 200)); len(b) != 127 {
		t.Errorf("pong has %d bytes, want 127", len(b))
	}
	b := appendClose(nil, closePolicy, strings.Repeat("ä", 100))
	if len(b) > 127 || b[2] != 0x03 || b[3] != 0xf0 || strings.Trim(string(b[4:]), "ä") != "" {
		t.Errorf("close frame = %x", b)
	}
	if b := appendClose(nil, closeNoStatus, "ignored"); !bytes.Equal(b, []byte{0x88, 0}) {
		t.Errorf("close without a code = %x, want 8800", b)
	}
}

// mirror is a gorilla client that reads what was written for it.
type mirror struct {
	out    chan []byte
	conn   *websocket.Conn
	pings  []string
	pongs  []string
	server *httptest.Server
}

func newMirror(t testing.TB) *mirror {
	m := &mirror{out: make(chan []byte)}
	var serving sync.WaitGroup
	serving.Add(1)
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer serving.Done()
		c, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		for b := range m.out {
			c.NetConn().Write(b)
		}
	}))
	var err error
	m.conn, _, err = websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(m.server.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	m.conn.SetPingHandler(func(s string) error { m.pings = append(m.pings, s); return nil })
	m.conn.SetPongHandler(func(s string) error { m.pongs = append(m.pongs, s); return nil })
	t.Cleanup(func() {
		close(m.out)
		serving.Wait()
		m.conn.Close()
		m.server.Close()
	})
	return m
}

func FuzzFramesAreReadAsWritten(f *testing.F) {
	f.Add([]byte("hello"), []byte("ping"), uint32(0))
	f.Add([]byte(""), []byte(""), uint32(126))
	f.Add([]byte("x"), []byte("y"), uint32(65536))
	f.Add([]byte("x"), make([]byte, 200), uint32(65535))
	m := newMirror(f)
	f.Fuzz(func(t *testing.T, text, control []byte, pad uint32) {
		first := append(bytes.Repeat([]byte("z"), int(pad%200_000)), text...)
		b := appendControl(nil, opPing, control)
		b = frame(b, opText, first)
		b = appendControl(b, opPong, control)
		b = frame(b, opText, text)
		m.pings, m.pongs = nil, nil
		m.conn.SetReadDeadline(time.Now().Add(await.Long))
		m.out <- b
		for _, want := range [][]byte{first, text} {
			kind, got, err := m.conn.ReadMessage()
			if err != nil || kind != websocket.TextMessage || !bytes.Equal(got, want) {
				t.Fatalf("read type %d, %d bytes, %v; wrote %d bytes of text", kind, len(got), err, len(want))
			}
		}
		want := string(control[:min(len(control), maxControl)])
		if len(m.pings) != 1 || m.pings[0] != want || len(m.pongs) != 1 || m.pongs[0] != want {
			t.Fatalf("pings %q, pongs %q, want one %q each", m.pings, m.pongs, want)
		}
	})
}

func TestFramingAMessageAllocatesNothing(t *testing.T) {
	m, dst := chunk(), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { dst = appendMessage(dst[:0], m, wire.Delivery{}) }); n != 0 {
		t.Errorf("appendMessage allocates %v times, want 0", n)
	}
}

func chunk() *agora.Message {
	return &agora.Message{
		Kind: agora.Request, Part: agora.Chunk, Stream: "stream-1", From: "agent-1", Seq: 123456789,
		To: agora.ToAgent(agora.DefaultTenant, "agent-2"), Body: []byte(`"` + strings.Repeat("x", 100) + `"`),
	}
}

func BenchmarkFrameChunk(b *testing.B) {
	m, dst := chunk(), make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		dst = appendMessage(dst[:0], m, wire.Delivery{})
	}
	b.SetBytes(int64(len(dst)))
}
