package model

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

var errCut = errors.New("the link is cut")

// link is every connection of one edge to one server. What is written waits in the link as in a network: it can be held
// up there, also when whoever wrote it has lost the connection, and arrive late.
type link struct {
	wg sync.WaitGroup // of cables

	mu    sync.Mutex // guards the fields below and what can change in cables
	moved sync.Cond  // on mu
	cut   bool       // nobody gets through
	out   bool       // nothing leaves
	in    bool       // nothing comes
	all   map[*cable]struct{}
}

func newLink() *link {
	l := &link{all: map[*cable]struct{}{}}
	l.moved.L = &l.mu
	return l
}

// cable is one connection of a link.
type cable struct {
	net.Conn
	link *link

	b        []byte    // written, and on its way
	over     bool      // closed by the client, or cut
	stuck    bool      // held up though the link is not
	drop     bool      // what is on its way is lost
	deadline time.Time // of reading
}

// Dial connects through the link, for NATS.
func (l *link) Dial(network, addr string) (net.Conn, error) {
	return l.dial(context.Background(), network, addr)
}

func (l *link) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		c.Close()
		return nil, errCut
	}
	on := &cable{Conn: c, link: l}
	l.all[on] = struct{}{}
	l.wg.Go(on.carry)
	return on, nil
}

// carry takes what was written to the server, to the last byte.
func (c *cable) carry() {
	l := c.link
	defer c.Conn.Close()
	for {
		l.mu.Lock()
		for !c.drop && (l.out || c.stuck || len(c.b) == 0 && !c.over) {
			l.moved.Wait()
		}
		b, last := c.b, c.over
		c.b = nil
		if c.drop || last {
			delete(l.all, c)
		}
		drop := c.drop
		l.mu.Unlock()
		if drop {
			return
		}
		if _, err := c.Conn.Write(b); err != nil || last {
			return
		}
	}
}

func (c *cable) Write(p []byte) (int, error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.over {
		return 0, errCut
	}
	c.b = append(c.b, p...)
	c.link.moved.Broadcast()
	return len(p), nil
}

func (c *cable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in && !c.deadline.IsZero() {
		defer time.AfterFunc(time.Until(c.deadline), l.moved.Broadcast).Stop()
	}
	for l.in && !c.over {
		if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		l.moved.Wait()
	}
	if c.over {
		return 0, errCut
	}
	return n, err
}

func (c *cable) SetDeadline(t time.Time) error {
	c.noteDeadline(t)
	return c.Conn.SetDeadline(t)
}

func (c *cable) SetReadDeadline(t time.Time) error {
	c.noteDeadline(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *cable) noteDeadline(t time.Time) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.deadline = t
}

// SetWriteDeadline does nothing: the link takes everything at once.
func (c *cable) SetWriteDeadline(time.Time) error { return nil }

// Close ends the connection for the client; what it wrote still arrives.
func (c *cable) Close() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.endLocked()
	return nil
}

func (c *cable) endLocked() {
	if c.over {
		return
	}
	c.over = true
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseRead() // one that is gone already is no loss
	}
	c.link.moved.Broadcast()
}

// hold stops both ways, or one of them, or lets everything go on.
func (l *link) hold(out, in bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out, l.in = out, in
	if !out {
		for c := range l.all {
			c.stuck = false
		}
	}
	l.moved.Broadcast()
}

// sever ends every connection. more: none comes to be until mend. late: what was on its way arrives when hold lets it;
// else it is lost.
func (l *link) sever(more, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = more
	for c := range l.all {
		c.stuck, c.drop = late, c.drop || !late
		c.endLocked()
	}
	l.out, l.in = false, false
	l.moved.Broadcast()
}

// mend lets connections come to be again.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// end lets go of everything and waits for it.
func (l *link) end() {
	l.sever(true, false)
	l.wg.Wait()
}
