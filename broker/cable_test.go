package broker

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// cable is a connection to a server that can be cut, and whose way back can be held up.
type cable struct {
	url string
	to  string
	l   net.Listener
	wg  sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	free  *sync.Cond // signalled when held or cut changes
	conns map[net.Conn]struct{}
	held  bool // nothing comes back
	cut   bool // nobody gets through
}

func testCable(t testing.TB, s *Server) *cable {
	t.Helper()
	u, err := url.Parse(strings.Split(s.URL(), ",")[0])
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{url: "nats://" + l.Addr().String(), to: u.Host, l: l, conns: make(map[net.Conn]struct{})}
	c.free = sync.NewCond(&c.mu)
	c.wg.Go(c.accept)
	t.Cleanup(func() {
		l.Close()
		c.sever(true)
		c.wg.Wait()
	})
	return c
}

func (c *cable) accept() {
	for {
		near, err := c.l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		c.mu.Lock()
		if err != nil || c.cut {
			c.mu.Unlock()
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		c.conns[near], c.conns[far] = struct{}{}, struct{}{}
		c.mu.Unlock()
		c.wg.Go(func() { c.pass(far, near, false) })
		c.wg.Go(func() { c.pass(near, far, true) })
	}
}

func (c *cable) pass(to, from net.Conn, back bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		for back && c.held {
			c.free.Wait()
		}
		_, open := c.conns[from]
		c.mu.Unlock()
		if !open {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil && err != io.EOF {
			return
		}
	}
}

// hold keeps what comes back from arriving; what goes there does.
func (c *cable) hold(held bool) {
	c.mu.Lock()
	c.held = held
	c.mu.Unlock()
	c.free.Broadcast()
}

// sever closes every connection, losing what is held; more says that none gets through any more.
func (c *cable) sever(more bool) {
	c.mu.Lock()
	for conn := range c.conns {
		conn.Close()
	}
	c.conns = make(map[net.Conn]struct{})
	c.cut, c.held = more, false
	c.mu.Unlock()
	c.free.Broadcast()
}
