package p2p

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
)

// conn is one connection of a peer, and what is kept of what its peer has sent: what was not read yet of all its
// streams, and of requests what was. A nil one counts nothing.
type conn struct {
	of      *conns
	peer    peer.ID
	from    netip.Addr
	secured net.Conn
	pending *admission.PendingConn // where it was accepted; nil where the edge has dialled it

	mu       sync.Mutex // guards the fields below
	standing standing
	in       edge.Admission         // zero where it is no member
	slot     *admission.Slot        // of what is the edge's own; nil for others
	place    *admission.PendingConn // among strangers; nil for others
	waits    *admission.Stranger    // what a stranger has unfinished; nil for others, and while there is nothing
	open     int                    // streams that the peer has begun
	held     int64
	over     bool
}

// standing is who a connection's peer is to the edge.
type standing uint8

const (
	stranger standing = iota
	member
	dialled // by the edge
	anEdge
)

// beOurs lets in what the edge has dialled, and other edges: nobody bounds those but the edge itself.
func (c *conn) beOurs(as standing) {
	slot, err := c.of.node.Shedder().Acquire()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked(as)
	if err != nil { // the edge holds too much already, and what it holds here as well is not sampled
		return
	}
	if c.over {
		slot.Release()
		return
	}
	c.slot = slot
	slot.Attach(c)
}

// settleLocked has the connection be pending no more. mu is held.
func (c *conn) settleLocked(as standing) {
	c.standing = as
	if c.pending != nil {
		c.pending.Admitted()
	}
	if c.place != nil {
		c.place.Admitted()
		c.place = nil
		c.of.stats.Strangers.Add(-1)
	}
	if c.waits != nil {
		c.waits.Leave()
		c.waits = nil
	}
}

// beMember lets a connection in for who its peer speaks as. RATE_LIMITED, UNAVAILABLE; then the permit is still the
// caller's.
func (c *conn) beMember(permit *admission.Permit, a *edge.Actor) error {
	if err := c.of.join(c); err != nil {
		return err
	}
	in, err := a.LetIn(permit)
	if err != nil {
		c.of.leave(c)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		c.of.leave(c)
		in.Release()
		return nil
	}
	c.settleLocked(member)
	c.in = in
	in.Attach(c)
	return nil
}

// beStranger has a connection take a place among strangers.
func (c *conn) beStranger(ctx context.Context) error {
	place, err := c.of.strangers.Enter(ctx, c.pending)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.standing, c.place = stranger, place
	c.pending.Admitted()
	c.of.stats.Strangers.Add(1)
	if c.over {
		c.overLocked()
	}
	return nil
}

// letIn notes that a stream of the peer was let in, which speaks as an actor: it is no stranger then. Where there is no
// place for it, it continues as one, for as long as it may.
func (c *conn) letIn(a *edge.Actor) {
	if c == nil || a == nil {
		return
	}
	c.mu.Lock()
	if c.waits != nil {
		c.waits.Stay()
	}
	is := c.standing == stranger && !c.over
	c.mu.Unlock()
	if !is {
		return
	}
	if permit, err := c.of.node.ConnLimiter().Acquire(c.from); err == nil && c.beMember(permit, a) != nil {
		permit.Release()
	}
}

// refused notes that a stream of the peer was refused, as it speaks as nobody: a member is a stranger from then on.
func (c *conn) refused(ctx context.Context, why error) {
	if c == nil || agora.AsError(why).Code != agora.Unauthorized {
		return
	}
	c.mu.Lock()
	is := c.standing == member && !c.over
	if is {
		c.standing = stranger
		c.in.Release()
		c.in = edge.Admission{}
	}
	c.mu.Unlock()
	if is {
		c.of.leave(c)
		if c.beStranger(ctx) != nil {
			c.close()
		}
	}
}

// beEdge notes that the peer is an edge of the cluster.
func (c *conn) beEdge() {
	if c == nil {
		return
	}
	c.mu.Lock()
	is := c.standing == stranger && !c.over
	c.mu.Unlock()
	if is {
		c.beOurs(anEdge)
	}
}

// Stream implements p2phost.Admission.
func (c *conn) Stream(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && c.standing == stranger && c.open >= strangerStreams {
		return false
	}
	c.open += n
	return c.unfinishedLocked(0)
}

// Hold implements p2phost.Admission.
func (c *conn) Hold(n int) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	full, ok := c.holdLocked(n)
	if !ok || n <= 0 || c.standing == stranger || c.standing == anEdge {
		return ok
	}
	return c.held <= c.of.queued/heldPart && (!full || c.held < worthClosing)
}

// keep counts n bytes of a request that were read, or no more where n is negative. UNAVAILABLE where the connection, or
// the edge, keeps as much as it may: the request is not to be read further.
func (c *conn) keep(n int) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	full, ok := c.holdLocked(n)
	if n > 0 && (!ok || full && c.held >= worthClosing || c.held > c.of.queued/keptPart) {
		return errFull
	}
	return nil
}

// sheds reports whether the edge takes nothing more of who speaks over the connection, as that holds too much.
func (c *conn) sheds() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.Shedding()
}

// holdLocked counts bytes, and reports whether the edge keeps as much as it may, and whether the connection may go on.
// mu is held.
func (c *conn) holdLocked(n int) (full, ok bool) {
	if c.over {
		return false, false
	}
	c.held += int64(n)
	full = c.of.count(n)
	if n > 0 {
		c.in.MarkActive()
		c.slot.MarkActive()
	}
	return full, c.standing != stranger || c.unfinishedLocked(n)
}

// unfinishedLocked counts what a stranger has unfinished, from when it has something, and for no longer than it may
// have. mu is held.
func (c *conn) unfinishedLocked(n int) bool {
	if c.standing != stranger || c.over {
		return !c.over
	}
	if c.waits == nil && (c.open > 0 || c.held > 0) {
		c.waits = c.of.node.Shedder().Strangers().Enter(c.from, c.evict)
	}
	if c.waits == nil {
		return true
	}
	err := c.waits.Hold(n)
	if c.open <= 0 && c.held <= 0 {
		c.waits.Leave()
		c.waits = nil
	}
	return err == nil
}

// Release implements p2phost.Admission.
func (c *conn) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	c.of.count(-int(c.held))
	c.held = 0
	if c.standing == member {
		c.of.leave(c)
	}
	c.in.Release()
	if c.slot != nil {
		c.slot.Release()
	}
	c.overLocked()
}

// overLocked gives back what the connection has among strangers and those that are pending. mu is held.
func (c *conn) overLocked() {
	if c.place != nil {
		_ = c.place.Close() // it is over, else
		c.place = nil
		c.of.stats.Strangers.Add(-1)
	}
	if c.waits != nil {
		c.waits.Leave()
		c.waits = nil
	}
	if c.pending != nil {
		_ = c.pending.Close() // it is over, else
	}
}

// evict closes a stranger that has unfinished what others need the room of.
func (c *conn) evict(error) { c.close() }

// close closes the connection. It does not wait for the peer.
func (c *conn) close() {
	if c.pending != nil {
		_ = c.pending.Close() // it is over, else
		return
	}
	_ = c.secured.Close()
}

// Held implements admission.Sheddable.
func (c *conn) Held() (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held, false
}

// Shed implements admission.Sheddable. Circuits of many go over what leads to another edge.
func (c *conn) Shed() {
	c.mu.Lock()
	ours := c.standing == anEdge
	c.mu.Unlock()
	if !ours {
		c.close()
	}
}
