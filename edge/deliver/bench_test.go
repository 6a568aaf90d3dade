package deliver

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
)

var lone = []byte(strings.Repeat("a frame ", 20))

// BenchmarkWriteLone writes one frame that was queued while nobody wrote, as the writer does that comes for it.
func BenchmarkWriteLone(b *testing.B) {
	w := writersOf(b, 0)
	line := &silent{}
	line.Init(line, w, edge.Admission{})
	me := &Writer{all: w, counts: true}
	b.ReportAllocs()
	for b.Loop() {
		line.Append(lone)
		o := w.dequeue()
		o.write(me)
	}
}

// silent is a line that takes everything.
type silent struct{ Outbox }

func (*silent) Encode(dst []byte, _ []edge.Delivery, _ *Writer) []byte { return dst }
func (*silent) Write(b []byte, _ *Writer) (int, error)                 { return len(b), nil }
func (*silent) Kill(edge.Cause)                                        {}
func (*silent) Ended(*Writer)                                          {}
func (*silent) Wrote(int, bool)                                        {}

// BenchmarkWriteSocket writes one frame to a socket whose peer takes it.
func BenchmarkWriteSocket(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	from, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer from.Close()
	to, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer to.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, to)
	}()
	w, line := &Writer{all: writersOf(b, 1)}, &silent{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := WriteSocket(from, lone, w, time.Minute, line); err != nil {
			b.Fatal(err)
		}
	}
	from.Close()
	<-read
}
