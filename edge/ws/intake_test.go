package ws

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// masked returns a frame as a client sends it.
func masked(first byte, payload string) []byte {
	mask := [4]byte{1, 2, 3, 254}
	b := []byte{first}
	switch n := len(payload); {
	case n <= maxControl:
		b = append(b, 0x80|byte(n))
	case n <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	b = append(b, mask[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^mask[i&3])
	}
	return b
}

func TestAPeerThatBreaksTheProtocolIsClosed(t *testing.T) {
	_, s := serve(t, Config{}, node{})
	for _, bad := range []struct {
		about string
		bytes []byte
		code  int
	}{
		{"a reserved bit", masked(final|0x40|byte(opText), `{}`), closeProtocol},
		{"a reserved opcode", masked(final|3, ""), closeProtocol},
		{"a reserved control opcode", masked(final|11, ""), closeProtocol},
		{"no mask", []byte{final | byte(opText), 2, '{', '}'}, closeProtocol},
		{"a fragmented ping", masked(byte(opPing), "x"), closeProtocol},
		{"a long ping", masked(final|byte(opPing), strings.Repeat("x", 126)), closeProtocol},
		{"what begins with a continuation", masked(final|byte(opMore), `{}`), closeProtocol},
		{"a message inside another", append(masked(byte(opText), `{`), masked(final|byte(opText), `}`)...), closeProtocol},
		{"a negative length", []byte{final | byte(opText), 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, closeProtocol},
		{"an impossible length", []byte{final | byte(opText), 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, closeTooBig},
		{"half a close code", masked(final|byte(opClose), "\x03"), closeProtocol},
		{"a close code that nobody says", masked(final|byte(opClose), "\x03\xed"), closeProtocol}, // 1005
		{"a close code out of range", masked(final|byte(opClose), "\x13\x88"), closeProtocol},     // 5000
		{"a close reason that is no text", masked(final|byte(opClose), "\x03\xe8\xff"), closeProtocol},
	} {
		t.Run(bad.about, func(t *testing.T) {
			c := dial(t, s)
			if _, err := c.NetConn().Write(bad.bytes); err != nil {
				t.Fatal(err)
			}
			c.hearClose(bad.code)
		})
	}
}

// However the bytes are cut into reads, and whatever control frames stand between the fragments, each
// message is read as it was sent.
func TestMessagesAreReadHoweverTheyCome(t *testing.T) {
	_, s := serve(t, Config{}, node{frame: 20000})
	c := dial(t, s)
	pongs := 0
	c.SetPongHandler(func(string) error { pongs++; return nil })
	var out []byte
	var want []string
	random := rand.New(rand.NewPCG(1, 2))
	for k := range 60 {
		id := strings.Repeat("i", 1+k)
		text := `{"type":"send","to":"x","id":"` + id + `","payload":"` + strings.Repeat("y", random.IntN(12000)) + `"}`
		want = append(want, id)
		first := byte(opText)
		for random.IntN(3) == 0 && len(text) > 1 {
			n := random.IntN(len(text))
			out = append(out, masked(first, text[:n])...)
			out = append(out, masked(final|byte(opPing), "p")...)
			text, first = text[n:], byte(opMore)
		}
		out = append(out, masked(final|first, text)...)
	}
	go func() {
		for at := 0; at < len(out); {
			n := min(1+random.IntN(9000), len(out)-at)
			if random.IntN(2) == 0 {
				n = min(1+random.IntN(20), len(out)-at)
			}
			if _, err := c.NetConn().Write(out[at : at+n]); err != nil {
				return
			}
			at += n
			runtime.Gosched()
		}
	}()
	for _, id := range want {
		if f := c.hearError(agora.InvalidRequest); f.RequestID != id { // it has not said who it is
			t.Fatalf("answer to %q, want one to %q: %+v", f.RequestID, id, f)
		}
	}
	if n := bytes.Count(out, masked(final|byte(opPing), "p")); pongs > n {
		t.Errorf("%d pongs, want %d at most", pongs, n)
	}
}

func TestUnmaskingBeginsAnywhere(t *testing.T) {
	mask := [4]byte{1, 20, 50, 255}
	for size := range 40 {
		for at := range uint64(5) {
			got, want := make([]byte, size), make([]byte, size)
			for i := range want {
				want[i] = mask[(uint64(i)+at)%4]
			}
			if unmask(got, mask, at); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes from %d on: %v, want %v", size, at, got, want)
			}
		}
	}
}

// endless gives the same bytes again and again.
type endless struct {
	net.Conn
	b []byte
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(p[n:], e.b)
		e.b = append(e.b[m:], e.b[:m]...)
		n += m
	}
	return n, nil
}

// BenchmarkReadMessage is one chunk's frame, from the socket's bytes to its text.
func BenchmarkReadMessage(b *testing.B) {
	frame := masked(final|byte(opText), `{"type":"send_chunk","to":"agent-2","stream_id":"stream-1","chunk":"`+strings.Repeat("x", 100)+`"}`)
	c := &conn{socket: &endless{b: frame}}
	c.in.open(0)
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		h, err := c.head(false)
		if err != nil {
			b.Fatal(err)
		}
		text, err := c.have(int(h.size))
		if err != nil {
			b.Fatal(err)
		}
		unmask(text, h.mask, 0)
		c.in.used(len(text))
	}
}

// A peer with much to say is read with a larger buffer, as long as it has.
func TestABufferIsAsLargeAsWhatComes(t *testing.T) {
	var in intake
	in.open(0)
	in.off, in.end = intakeSize-3, intakeSize
	copy(in.buf[in.off:], "abc")
	in.shift()
	if len(in.buf) != wideSize || string(in.buf[in.off:in.end]) != "abc" {
		t.Fatalf("once filled, a buffer is one of %d bytes that begins with %q", len(in.buf), in.buf[in.off:in.end])
	}
	in.off, in.end = intakeSize+1, intakeSize+1
	if in.rewind(); len(in.buf) != wideSize || in.off != 0 || in.end != 0 {
		t.Errorf("while more comes than %d bytes, the buffer has %d", intakeSize, len(in.buf))
	}
	in.off, in.end = intakeSize, intakeSize
	if in.rewind(); len(in.buf) != intakeSize {
		t.Errorf("when less comes, the buffer still has %d bytes", len(in.buf))
	}
	if in.shut(); in.buf != nil {
		t.Error("a buffer is kept of a peer that is quiet")
	}
}
