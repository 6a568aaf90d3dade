package frame

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

	"github.com/agora-relay/agora/internal/await"
)

func framed(dst []byte, op Op, payload []byte) []byte {
	at := len(dst)
	return End(append(Begin(dst), payload...), at, op)
}

func TestHeadersAreThoseOfTheStandard(t *testing.T) {
	for _, c := range []struct {
		op   Op
		size int
		head string
	}{
		{Text, 0, "8100"},
		{Text, 125, "817d"},
		{Text, 126, "817e007e"},
		{Text, 65535, "817effff"},
		{Text, 65536, "817f0000000000010000"},
		{Text, 1 << 20, "817f0000000000100000"},
		{Ping, 8, "8908"},
		{Pong, 125, "8a7d"},
		{Close, 2, "8802"},
	} {
		payload := bytes.Repeat([]byte("x"), c.size)
		got := framed([]byte("before"), c.op, payload)
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
	if b := AppendControl(nil, Pong, make([]byte, 200)); len(b) != 127 {
		t.Errorf("pong has %d bytes, want 127", len(b))
	}
	b := AppendClose(nil, ClosePolicy, strings.Repeat("ä", 100))
	if len(b) > 127 || b[2] != 0x03 || b[3] != 0xf0 || strings.Trim(string(b[4:]), "ä") != "" {
		t.Errorf("close frame = %x", b)
	}
	if b := AppendClose(nil, CloseNoStatus, "ignored"); !bytes.Equal(b, []byte{0x88, 0}) {
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
		c, err := new(websocket.Upgrader).Upgrade(w, r, nil)
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
		b := AppendControl(nil, Ping, control)
		b = framed(b, Text, first)
		b = AppendControl(b, Pong, control)
		b = framed(b, Text, text)
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
