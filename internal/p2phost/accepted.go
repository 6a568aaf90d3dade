package p2phost

import (
	"errors"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
)

// accepted is a connection that a port has accepted.
type accepted struct {
	net.Conn
	head    []byte // what was read to see what is spoken, to be read again
	hello   hello
	patient *time.Timer // closes it unless its peer has proven in time who it is
	scope   network.ConnManagementScope
	local   ma.Multiaddr
	remote  ma.Multiaddr
}

// securedTime is how long a peer may take to prove who it is.
const securedTime = 20 * time.Second

func newAccepted(c net.Conn) *accepted {
	a := &accepted{Conn: c}
	a.patient = time.AfterFunc(securedTime, func() { _ = c.Close() }) // it is over, else
	return a
}

// Read implements net.Conn.
func (a *accepted) Read(b []byte) (int, error) {
	if len(a.head) > 0 { // one goroutine reads
		n := copy(b, a.head)
		a.head = a.head[n:]
		return n, nil
	}
	return a.Conn.Read(b)
}

// Close implements net.Conn.
func (a *accepted) Close() error {
	a.patient.Stop()
	return a.Conn.Close()
}

// secured notes that the peer has proven who it is.
func (a *accepted) secured() {
	if a == nil {
		return
	}
	a.patient.Stop()
	if c, is := a.Conn.(*pendingConn); is {
		c.secured()
	}
}

// netConn returns what the listener has accepted; nil where no port has.
func (a *accepted) netConn() net.Conn {
	if a == nil {
		return nil
	}
	return a.Conn
}

// peerAddr is where an accepted connection comes from: the one thing by which a connection that is secured knows it.
type peerAddr struct {
	net.Addr
	of *accepted
}

// acceptedOf returns the accepted connection that another one goes over; nil where it goes over none.
func acceptedOf(c net.Conn) *accepted {
	if at, is := c.RemoteAddr().(peerAddr); is {
		return at.of
	}
	return nil
}

// raw is an accepted connection over which libp2p is spoken, by itself or as WebSocket.
type raw struct {
	net.Conn // what is read and written
	of       *accepted
}

// Read implements net.Conn. Until the peer has proven who it is nothing may be large.
func (r *raw) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	if !r.of.hello.done() && !r.of.hello.fits(b[:n]) {
		return 0, errors.Join(errHello, r.Close())
	}
	return n, err
}

// Close implements net.Conn.
func (r *raw) Close() error {
	r.of.patient.Stop()
	return r.Conn.Close()
}

// RemoteAddr implements net.Conn.
func (r *raw) RemoteAddr() net.Addr { return peerAddr{r.Conn.RemoteAddr(), r.of} }

// LocalMultiaddr implements manet.Conn.
func (r *raw) LocalMultiaddr() ma.Multiaddr { return r.of.local }

// RemoteMultiaddr implements manet.Conn.
func (r *raw) RemoteMultiaddr() ma.Multiaddr { return r.of.remote }
