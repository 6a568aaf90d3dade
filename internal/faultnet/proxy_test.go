package faultnet

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // until the connection ends
			})
		}
	})
	return l.Addr().String()
}

// says sends a byte and returns what is wrong with the answer.
func says(c net.Conn, within time.Duration) error {
	_ = c.SetDeadline(time.Now().Add(within))
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

func dialProxy(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestALineIsCutGoesSilentAndIsMended(t *testing.T) {
	p := NewProxy(t, echo(t))
	c := dialProxy(t, p.Addr())
	if err := says(c, await.Long); err != nil {
		t.Fatalf("line that is up: %v", err)
	}

	p.Silence()
	if err := says(c, 50*time.Millisecond); err == nil || isReset(err) {
		t.Fatalf("silent line: %v, want a time-out", err)
	}
	p.Mend()
	_ = c.SetDeadline(time.Now().Add(await.Long))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatalf("what was held back: %v", err)
	}

	p.Cut()
	if err := says(c, await.Long); !isReset(err) {
		t.Fatalf("cut line: %v, want a connection that is gone", err)
	}
	if c, err := net.Dial("tcp", p.Addr()); err == nil { // else it was reset before it was ours
		defer c.Close()
		if err := says(c, await.Long); !isReset(err) {
			t.Fatalf("new connection on a cut line: %v, want one that is gone", err)
		}
	}
	p.Mend()
	if err := says(dialProxy(t, p.Addr()), await.Long); err != nil {
		t.Fatalf("mended line: %v", err)
	}
}

// isReset tells an end of the connection from a time-out.
func isReset(err error) bool {
	n, ok := err.(net.Error)
	return err != nil && !(ok && n.Timeout())
}
