package frame

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestUnmaskingBeginsAnywhere(t *testing.T) {
	h := head{mask: [4]byte{1, 20, 50, 255}}
	for size := range 40 {
		for at := range uint64(5) {
			got, want := make([]byte, size), make([]byte, size)
			for i := range want {
				want[i] = h.mask[(uint64(i)+at)%4]
			}
			if h.unmask(got, at); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes from %d on: %v, want %v", size, at, got, want)
			}
		}
	}
}

// endless gives the same bytes again and again.
type endless struct{ b []byte }

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
	text := `{"type":"send_chunk","to":"agent-2","stream_id":"stream-1","chunk":"` + strings.Repeat("x", 100) + `"}`
	one := append([]byte{Final | byte(Text), masked | 126, 0, byte(len(text)), 1, 2, 3, 254}, text...)
	src := &endless{b: slices.Clone(one)}
	var r Reader
	r.Open(0)
	defer r.Shut()
	b.SetBytes(int64(len(one)))
	b.ReportAllocs()
	for b.Loop() {
		if r.Quiet() {
			b.Fatal("the peer counts as quiet")
		}
		var m Message
		if err := r.Next(src, &m, 1<<20, 1<<20); err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
}

// A peer with much to say is read with a larger buffer, as long as it has.
func TestABufferIsAsLargeAsWhatComes(t *testing.T) {
	var in Reader
	in.Open(0)
	in.off, in.end = Window-3, Window
	copy(in.buf[in.off:], "abc")
	in.shift()
	if len(in.buf) != wideSize || string(in.buf[in.off:in.end]) != "abc" {
		t.Fatalf("once filled, a buffer is one of %d bytes that begins with %q", len(in.buf), in.buf[in.off:in.end])
	}
	in.off, in.end = Window+1, Window+1
	if in.rewind(); len(in.buf) != wideSize || in.off != 0 || in.end != 0 {
		t.Errorf("while more comes than %d bytes, the buffer has %d", Window, len(in.buf))
	}
	in.off, in.end = Window, Window
	if in.rewind(); len(in.buf) != Window {
		t.Errorf("when less comes, the buffer still has %d bytes", len(in.buf))
	}
	if in.Shut(); in.buf != nil {
		t.Error("a buffer is kept of a peer that is quiet")
	}
}
