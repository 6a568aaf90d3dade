package sidecar

import (
	"container/list"
	"net"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/p2phost"
)

const (
	mostConns    = 512       // connections that others have opened to the peer
	mostHeld     = 256 << 20 // bytes that are kept of what all peers have sent
	worthClosing = 256 << 10 // bytes below which closing a connection frees nothing
)

// conns bounds the connections of the peer, and what is kept of what comes over them. Of those that others have opened
// the one that came first makes room that nobody asks anything over.
type conns struct {
	mu   sync.Mutex // guards the fields below, and those of each conn
	idle list.List  // of *conn that others have opened and nobody asks anything over, the one that came to do so first in front
	n    int        // connections that others have opened
	held int
}

// conn is one connection of the peer.
type conn struct {
	of     *conns
	below  net.Conn
	theirs bool // others have opened it
	at     *list.Element
	open   int // streams that its peer has begun
	held   int
	over   bool
}

// Admit implements p2phost.Admitter.
func (c *conns) Admit(s p2phost.Secured) (p2phost.Admission, error) {
	one := &conn{of: c, below: s.Conn, theirs: !s.Dialled}
	if s.Accepted != nil {
		one.below = s.Accepted // whose end does not wait for the peer
	}
	if !one.theirs { // the sidecar has dialled it, as it does relays
		return one, nil
	}
	out, err := c.enter(one)
	if out != nil {
		_ = out.below.Close() // it is over, else
	}
	return one, err
}

// enter notes a connection, and returns the one that is to be closed for it; nil for none.
func (c *conns) enter(one *conn) (out *conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n >= mostConns {
		first := c.idle.Front()
		if first == nil {
			return nil, agora.Errorf(agora.Unavailable, "there are as many connections as there may be")
		}
		out = first.Value.(*conn)
		out.leaveLocked()
	}
	c.n++
	one.at = c.idle.PushBack(one)
	return out, nil
}

// leaveLocked has a connection count no more. The lock is held.
func (o *conn) leaveLocked() {
	if o.over {
		return
	}
	o.over = true
	o.of.held -= o.held
	if o.at != nil {
		o.of.idle.Remove(o.at)
		o.at = nil
	}
	if o.theirs {
		o.of.n--
	}
}

// Stream implements p2phost.Admission. What the streams do is bounded where they are served.
func (o *conn) Stream(n int) bool {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.open += n
	if !o.theirs || o.over {
		return !o.over
	}
	if o.at != nil && o.open > 0 {
		o.of.idle.Remove(o.at)
		o.at = nil
	}
	if o.at == nil && o.open <= 0 {
		o.at = o.of.idle.PushBack(o)
	}
	return true
}

// Hold implements p2phost.Admission.
func (o *conn) Hold(n int) bool {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	if o.over {
		return false
	}
	o.held += n
	o.of.held += n
	return n <= 0 || o.of.held <= mostHeld || o.held < worthClosing
}

// Release implements p2phost.Admission.
func (o *conn) Release() {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.leaveLocked()
}
