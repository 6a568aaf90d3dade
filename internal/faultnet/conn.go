package faultnet

import (
	"net"
	"os"
	"time"
)

// Conn is a connection of a [Link].
type Conn struct {
	net.Conn
	link   *Link
	number uint64 // among the link's

	// The link's lock guards the fields below.
	b        []byte    // written, and kept from arriving
	carrying bool      // a carrier takes b to the peer, and what closes the connection
	stuck    bool      // what is written is late though the link is not
	unread   bool      // readers wait though the link does not hold them
	closed   bool      // by the one who has it, or cut
	half     bool      // nothing more is written
	lost     bool      // what is on its way does not arrive
	greeting bool      // nothing holds it up until its first deadline is taken back
	deadline time.Time // of reading
}

// NetConn returns the connection itself.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Read reads, and waits while the link holds readers.
func (c *Conn) Read(p []byte) (int, error) {
	if err := c.mayRead(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if held := c.mayRead(); held != nil {
		return 0, held
	}
	return n, err
}

func (c *Conn) mayRead() error {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.holdReads && !c.unread && !c.closed || c.greeting && !c.closed {
		return nil
	}
	if !c.deadline.IsZero() {
		defer time.AfterFunc(time.Until(c.deadline), l.changed.Broadcast).Stop()
	}
	for (l.holdReads || c.unread) && !c.closed {
		if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
			return os.ErrDeadlineExceeded
		}
		l.changed.Wait()
	}
	if c.closed {
		return ErrCut
	}
	return nil
}

// Write writes, waits while the link holds writers, and takes everything at once while the link is late.
func (c *Conn) Write(p []byte) (int, error) {
	kept, err := c.keep(p)
	if err != nil {
		return 0, err
	}
	if kept {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// keep puts p under way where it may not arrive yet.
func (c *Conn) keep(p []byte) (bool, error) {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for !c.closed && (l.holdWrites && !c.greeting || c.carrying && !c.late()) {
		l.changed.Wait()
	}
	if c.closed || c.half {
		return false, ErrCut
	}
	if !c.late() {
		return false, nil
	}
	c.b = append(c.b, p...)
	c.startCarrier()
	return true, nil
}

// late reports whether what is written may not arrive yet; the link's lock is held, as it is for startCarrier.
func (c *Conn) late() bool { return (c.link.late || c.stuck) && !c.greeting }

func (c *Conn) startCarrier() {
	if !c.carrying {
		c.carrying = true
		c.link.carriers.Go(c.carry)
	}
}

// carry takes what is under way to the peer, to the last byte, and what closes the connection after it.
func (c *Conn) carry() {
	for {
		b, more := c.next()
		if !more {
			return
		}
		_ = c.Conn.SetWriteDeadline(time.Time{})   // that of whoever wrote it was kept; a connection that has gone fails below
		if _, err := c.Conn.Write(b); err != nil { // nobody is there to take it
			c.link.change(func() { c.lost = true })
		}
	}
}

// next waits for what may arrive. more is false when nothing is under way any more.
func (c *Conn) next() (b []byte, more bool) {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for !c.lost && c.late() {
		l.changed.Wait()
	}
	b, c.b = c.b, nil
	if len(b) > 0 && !c.lost {
		return b, true
	}
	c.carrying = false
	l.changed.Broadcast()
	switch {
	case c.closed:
		delete(l.conns, c)
		_ = c.Conn.Close() // it may be gone
	case c.half:
		c.endWrites()
	}
	return nil, false
}

// CloseWrite tells the peer that nothing more comes, once what is under way has arrived.
func (c *Conn) CloseWrite() error {
	c.link.change(func() {
		if c.closed || c.half {
			return
		}
		c.half = true
		if c.late() {
			c.startCarrier()
		} else if !c.carrying {
			c.endWrites()
		}
	})
	return nil
}

func (c *Conn) endWrites() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // it may be gone
	}
}

// Close closes the connection. What is under way still arrives, and its end after it.
func (c *Conn) Close() error {
	l := c.link
	l.mu.Lock()
	if c.closed || c.late() || c.carrying {
		defer l.mu.Unlock()
		c.closeLate()
		return nil
	}
	c.closed = true
	delete(l.conns, c)
	l.changed.Broadcast()
	l.mu.Unlock()
	return c.Conn.Close()
}

// closeLate closes the connection for the one who has it, and for the peer when what is under way has arrived. The
// link's lock is held.
func (c *Conn) closeLate() {
	if c.closed {
		return
	}
	c.closed = true
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseRead() // the one who reads is told
	}
	c.startCarrier()
	c.link.changed.Broadcast()
}

// end closes the connection itself; abrupt: so that its peer knows at once, whatever is still on its way.
func (c *Conn) end(abrupt bool) {
	if tcp, ok := c.Conn.(*net.TCPConn); ok && abrupt {
		_ = tcp.SetLinger(0) // the close that follows says all
	}
	_ = c.Conn.Close()
}

// SetDeadline sets the deadlines of reading and writing.
func (c *Conn) SetDeadline(t time.Time) error {
	c.link.change(func() { c.deadline, c.greeting = t, c.greeting && !t.IsZero() })
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline sets the deadline of reading, also for readers who are held.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.link.change(func() { c.deadline, c.greeting = t, false })
	return c.Conn.SetReadDeadline(t)
}
