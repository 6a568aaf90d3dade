package broker

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/broker/natsd"
)

// cable is a connection to a server that can be cut, and each of whose ways can be held up. What is held on its way
// there arrives late, also when whoever sent it has gone: as in a network.
type cable struct {
	url string
	to  string
	l   net.Listener
	wg  sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	free  *sync.Cond // signalled when held or cut changes
	conns map[net.Conn]struct{}
	held  bool // nothing comes back
	late  bool // nothing gets there
	owed  int  // bytes that wait to get there
	ways  []*way
	cut   bool // nobody gets through
}

func testCable(t testing.TB, s *natsd.Server) *cable {
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
		w := &way{cable: c, to: far, near: near}
		c.ways = append(c.ways, w)
		c.mu.Unlock()
		c.wg.Go(func() { w.fill(near) })
		c.wg.Go(w.empty)
		c.wg.Go(func() { c.pass(near, far) })
	}
}

// way is the way there of one connection. The cable's mu guards what can change.
type way struct {
	cable    *cable
	to, near net.Conn

	b     []byte // under way
	over  bool   // nothing follows
	full  bool   // nothing more is taken from the client
	stuck bool   // held up though later connections are not
}

// fill takes what the client writes, as fast as it comes.
func (w *way) fill(from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		w.cable.mu.Lock()
		w.b = append(w.b, buf[:n]...)
		w.cable.owed += n
		w.over = err != nil
		w.cable.free.Broadcast()
		for w.full && !w.over && w.there() {
			w.cable.free.Wait()
		}
		w.cable.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// there reports whether the connection has not been severed; the cable's mu is held.
func (w *way) there() bool {
	_, there := w.cable.conns[w.near]
	return there
}

// empty hands it to the server, when it may, to the last byte.
func (w *way) empty() {
	c := w.cable
	defer w.to.Close()
	for {
		c.mu.Lock()
		open := true
		for open && (c.late || w.stuck || len(w.b) == 0 && !w.over) {
			c.free.Wait()
			_, open = c.conns[w.to]
		}
		b, over := w.b, w.over
		w.b = nil
		c.owed -= len(b)
		c.mu.Unlock()
		if !open {
			return
		}
		if _, err := w.to.Write(b); err != nil || over {
			return
		}
	}
}

// pass hands to the client what comes back. Where nobody is there to take it, it is lost.
func (c *cable) pass(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		for c.held {
			c.free.Wait()
		}
		_, open := c.conns[from]
		c.mu.Unlock()
		if !open {
			return
		}
		_, _ = to.Write(buf[:n])
	}
}

// hold keeps what comes back from arriving; what goes there does.
func (c *cable) hold(held bool) {
	c.mu.Lock()
	c.held = held
	c.mu.Unlock()
	c.free.Broadcast()
}

// delay keeps what goes to the server under way, or lets it arrive.
func (c *cable) delay(late bool) {
	c.mu.Lock()
	c.late = late
	for _, w := range c.ways {
		w.stuck = w.stuck && late
	}
	c.mu.Unlock()
	c.free.Broadcast()
}

// underWay returns how many bytes wait to get to the server.
func (c *cable) underWay() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owed
}

// strand has every client lose its connection while what it wrote stays under way, until the next delay(false). New
// connections are not held up.
func (c *cable) strand() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = false
	for _, w := range c.ways {
		w.stuck = true
		if tcp, ok := w.near.(*net.TCPConn); ok {
			_ = tcp.CloseWrite() // one that has gone already is no loss
		}
	}
}

// stick has the connections that there are take nothing more from their clients, as those of a server that is stopped. New ones do.
func (c *cable) stick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.ways {
		w.full = true
	}
}

// sever closes every connection, losing what is held; more says that none gets through any more.
func (c *cable) sever(more bool) {
	c.mu.Lock()
	for conn := range c.conns {
		conn.Close()
	}
	c.conns = make(map[net.Conn]struct{})
	c.cut, c.held, c.late = more, false, false
	c.mu.Unlock()
	c.free.Broadcast()
}
