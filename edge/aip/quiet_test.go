//go:build unix

package aip_test

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/await"
)

// counting is a pool of buffers that counts those that are out.
type counting struct{ out, got atomic.Int64 }

func (c *counting) Get(n int) *[]byte {
	c.out.Add(1)
	c.got.Add(1)
	b := make([]byte, n)
	return &b
}

func (c *counting) Put(*[]byte) { c.out.Add(-1) }

func TestAQuietConnectionHoldsNoBuffer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	q := aip.NewQuietConn(in, nil)
	defer q.Close()
	var pool counting
	heard, end := make(chan string), make(chan error, 1)
	go func() {
		for {
			b, n, err := q.ReadOnReady(4, &pool)
			if err != nil {
				end <- err
				return
			}
			heard <- string((*b)[:n])
			pool.Put(b)
		}
	}()
	await.True(t, "nothing has come, and no buffer is out", func() bool { return pool.got.Load() > 0 && pool.out.Load() == 0 })
	if _, err := io.WriteString(out, "abcdef"); err != nil {
		t.Fatal(err)
	}
	got := ""
	for len(got) < 6 {
		got += await.Recv(t, "something comes", heard)
	}
	if got != "abcdef" {
		t.Errorf("%q came, want what was written", got)
	}
	await.True(t, "all is read, and no buffer is out", func() bool { return pool.out.Load() == 0 })
	out.Close()
	if err := await.Recv(t, "its end", end); !errors.Is(err, io.EOF) {
		t.Errorf("it ends with %v, want %v", err, io.EOF)
	}
	if n := pool.out.Load(); n != 0 {
		t.Errorf("%d buffers are out at the end", n)
	}
}
