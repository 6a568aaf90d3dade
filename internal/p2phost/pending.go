package p2phost

import (
	"container/list"
	"net"
	"sync"
)

// mostPending is how many connections of a port may be pending that this package has opened: their peers have not
// proven yet who they are.
const mostPending = 1024

// pendingListener bounds the connections that are pending: a newcomer has the place of the one that has been pending
// longest. It is for hosts whose makers don't bring a listener that does so.
type pendingListener struct {
	net.Listener

	mu      sync.Mutex // guards the field below
	waiting list.List  // of *pendingConn, the one that came first in front
}

// pendingConn is a connection of a pendingListener.
type pendingConn struct {
	net.Conn
	of *pendingListener
	at *list.Element // guarded by of.mu; nil once it is not pending
}

// listenTCP opens a port.
func listenTCP(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &pendingListener{Listener: l}, nil
}

// Accept implements net.Listener.
func (p *pendingListener) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &pendingConn{Conn: c, of: p}
	p.mu.Lock()
	one.at = p.waiting.PushBack(one)
	var out *pendingConn
	if p.waiting.Len() > mostPending {
		out = p.waiting.Front().Value.(*pendingConn)
	}
	p.mu.Unlock()
	if out != nil {
		_ = out.Close() // it is over, else
	}
	return one, nil
}

// secured takes a connection off those that are pending.
func (c *pendingConn) secured() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.at != nil {
		c.of.waiting.Remove(c.at)
		c.at = nil
	}
}

// Close implements net.Conn.
func (c *pendingConn) Close() error {
	c.secured()
	return c.Conn.Close()
}

// SetLinger says what becomes of what is not sent when the connection is closed.
func (c *pendingConn) SetLinger(sec int) error {
	if t, is := c.Conn.(*net.TCPConn); is {
		return t.SetLinger(sec)
	}
	return nil
}
