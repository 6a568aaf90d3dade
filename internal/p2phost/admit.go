package p2phost

import (
	"net"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// Secured is a connection whose peer has proven who it is.
type Secured struct {
	Conn     net.Conn // to be closed where the peer may stay no longer
	Peer     peer.ID
	Accepted net.Conn // what the host's listener has accepted; nil for a connection that the host has dialled, and for one through a relay
	Dialled  bool     // by this host
}

// Admitter decides which connections of a host may stay. Its methods may be called at the same time.
type Admitter interface {
	// Admit is asked once a peer has proven who it is. It may block for some seconds. An error closes the connection.
	Admit(Secured) (Admission, error)
}

// Admission counts what the peer of one connection that may stay does. Its methods may be called at the same time, and
// must not block.
type Admission interface {
	// Hold learns that n bytes more are kept of what the peer has sent, or fewer where n is negative. False closes the
	// connection.
	Hold(n int) bool
	// Stream learns that the peer has n streams more open that it has begun, or fewer. False refuses one that begins;
	// it is not open then.
	Stream(n int) bool
	// Release is called once, when the connection is closed. Streams of its may end behind that.
	Release()
}

// AdmissionOf returns the admission of a connection; nil where its host has no Admitter.
func AdmissionOf(c network.Conn) Admission {
	var a Admission
	c.As(&a)
	return a
}

// everybody is the Admitter of a host that has none.
type everybody struct{}

// Admit implements Admitter.
func (everybody) Admit(Secured) (Admission, error) { return uncounted{}, nil }

// uncounted is the admission of a connection that nobody counts.
type uncounted struct{}

// Hold implements Admission.
func (uncounted) Hold(int) bool { return true }

// Stream implements Admission.
func (uncounted) Stream(int) bool { return true }

// Release implements Admission.
func (uncounted) Release() {}
