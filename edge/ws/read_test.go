package ws

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/agora-relay/agora"

	"github.com/agora-relay/agora/edge/ws/frame"
)

// masked returns a frame as a client sends it.
func masked(first byte, payload string) []byte {
	mask := [4]byte{1, 2, 3, 254}
	b := []byte{first}
	switch n := len(payload); {
	case n <= 125:
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
		{"a reserved bit", masked(frame.Final|0x40|byte(frame.Text), `{}`), frame.CloseProtocol},
		{"a reserved frame.Op", masked(frame.Final|3, ""), frame.CloseProtocol},
		{"a reserved control frame.Op", masked(frame.Final|11, ""), frame.CloseProtocol},
		{"no mask", []byte{frame.Final | byte(frame.Text), 2, '{', '}'}, frame.CloseProtocol},
		{"a fragmented ping", masked(byte(frame.Ping), "x"), frame.CloseProtocol},
		{"a long ping", masked(frame.Final|byte(frame.Ping), strings.Repeat("x", 126)), frame.CloseProtocol},
		{"what begins with a continuation", masked(frame.Final|byte(frame.More), `{}`), frame.CloseProtocol},
		{"a message inside another", append(masked(byte(frame.Text), `{`), masked(frame.Final|byte(frame.Text), `}`)...), frame.CloseProtocol},
		{"a negative length", []byte{frame.Final | byte(frame.Text), 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, frame.CloseProtocol},
		{"an impossible length", []byte{frame.Final | byte(frame.Text), 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, frame.CloseTooBig},
		{"half a close code", masked(frame.Final|byte(frame.Close), "\x03"), frame.CloseProtocol},
		{"a close code that nobody says", masked(frame.Final|byte(frame.Close), "\x03\xed"), frame.CloseProtocol}, // 1005
		{"a close code out of range", masked(frame.Final|byte(frame.Close), "\x13\x88"), frame.CloseProtocol},     // 5000
		{"a close reason that is no text", masked(frame.Final|byte(frame.Close), "\x03\xe8\xff"), frame.CloseProtocol},
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
		first := byte(frame.Text)
		for random.IntN(3) == 0 && len(text) > 1 {
			n := random.IntN(len(text))
			out = append(out, masked(first, text[:n])...)
			out = append(out, masked(frame.Final|byte(frame.Ping), "p")...)
			text, first = text[n:], byte(frame.More)
		}
		out = append(out, masked(frame.Final|first, text)...)
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
	if n := bytes.Count(out, masked(frame.Final|byte(frame.Ping), "p")); pongs > n {
		t.Errorf("%d pongs, want %d at most", pongs, n)
	}
}
