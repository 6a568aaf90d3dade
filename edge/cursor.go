package edge

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// cursor is how far an agent has got with its mailbox and its spaces, and what proves that. No method blocks.
type cursor struct {
	proof     proof       // of what has arrived
	unwritten atomic.Bool // the session stands among those whose positions are to be written

	mu            sync.Mutex // guards the fields below, and what subscriptions say of themselves
	closed        bool       // the session is over here: nothing is handed on any more
	left          bool       // nothing of the session is here any more
	writing       bool       // the door has been handed what it has not written yet
	unackedFrames int32      // frames of the mailbox written since the last ping
	pings         pings
	acked         uint64 // known to have arrived
	written       uint64 // written to the socket
	handed        uint64 // given to the door to write
	reread        uint64 // given to a reader of the door that reads the log by itself
	subscriptions map[string]*subscription
	ready         []*subscription // those whose Next may have something
}

// pings are what proves by pongs how far the mailbox has arrived: one is under way at a time.
type pings struct {
	seq     uint64 // what the pong of the last one confirms of the mailbox
	number  uint32 // of the last one
	awaited uint32 // the same, where it confirms something and its pong has not come; 0 otherwise
}

// send counts a ping for what is written up to a position, which may confirm something, and returns its number.
func (p *pings) send(written uint64, confirms bool) (number uint64) {
	p.number++
	p.seq = written
	if confirms {
		p.awaited = p.number
	}
	return uint64(p.number)
}

// pending reports whether a pong that confirms something is awaited.
func (p *pings) pending() bool { return p.awaited != 0 }

// returns takes the pong of a ping, and reports whether it is the one that is under way.
func (p *pings) returns(number uint64) bool {
	if !p.pending() || number != uint64(p.awaited) {
		return false
	}
	p.awaited = 0
	return true
}

// subscription is a session's in a space, and how far the agent has got there.
type subscription struct {
	*spaces.Place
	queued  bool // stands in the cursor's ready list
	counted bool // among the memberships of its owner

	acked     uint64 // known to have arrived
	written   uint64 // written to the socket
	handed    uint64 // given to the door to write
	resumed   bool   // an earlier socket may have been given events up to the log's end
	pinged    uint64 // what the pong of the ping under way confirms
	persisted uint64 // what presence was last told
}

// begin sets where the mailbox stands: up to acked it has arrived, up to handed an earlier socket may have been given
// it, of which nothing is proved by what this one is written.
func (c *cursor) begin(acked, handed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked, c.written, c.handed = acked, acked, handed
}

// close ends the handing on, and returns the subscriptions. Idempotent.
func (c *cursor) close() []*subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	subs := make([]*subscription, 0, len(c.subscriptions))
	for _, p := range c.subscriptions {
		subs = append(subs, p)
	}
	return subs
}

// markHanded notes what is about to be written, and returns it: the client may acknowledge it before the writer
// comes back. What was withheld of a space that the agent has left since, or joined again, is dropped: its subscription
// gives what is wanted now. It returns false where the session is over here: its next holder may have been told a
// position without what was pulled.
func (c *cursor) markHanded(pulled []Delivery) ([]Delivery, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return pulled, false
	}
	stale := func(d *Delivery) bool { return d.Event != nil && c.subscriptions[d.Event.To.Space] != d.sub }
	drop := false
	for i := range pulled {
		d := &pulled[i]
		switch {
		case d.Event == nil:
			c.handed = max(c.handed, d.seq())
		case stale(d):
			drop = true
		default:
			d.sub.handed = max(d.sub.handed, d.seq())
		}
	}
	if drop {
		pulled = slices.DeleteFunc(pulled, func(d Delivery) bool { return stale(&d) })
	}
	c.writing = len(pulled) > 0
	return pulled, true
}

// lost notes that the door writes nothing any more.
func (c *cursor) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
}

// isWriting reports whether the door has been handed what it has not written yet.
func (c *cursor) isWriting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writing
}

// markHandedAside is handed for what a reader has read by itself, up to a position.
func (c *cursor) markHandedAside(seq uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.reread = max(c.reread, seq)
	return true
}

// markWritten notes what was written. Where so much is unconfirmed that its senders would soon be refused for
// it, it asks for a ping with the data: who reads thousands of messages a second, and acknowledges none, would have its
// mailbox taken for full before the next ping is due. most is how many frames of a mailbox may be unconfirmed.
func (c *cursor) markWritten(pulled []Delivery, most int64) (data uint64, ask bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	for i := range pulled {
		d := &pulled[i]
		d.span.End(nil)
		if d.Event == nil {
			c.written = max(c.written, d.seq())
			c.unackedFrames++
		} else {
			d.sub.written = max(d.sub.written, d.seq())
		}
	}
	if c.proof.is(ByWrite) {
		c.writtenProves()
	}
	if c.pings.pending() || !c.proof.is(ByPong) || int64(c.unackedFrames) < max(1, most/8) {
		return 0, false
	}
	return c.ping()
}

// writtenProves takes what was written for what has arrived. The caller holds mu.
func (c *cursor) writtenProves() {
	c.acked = max(c.acked, c.written)
	for _, p := range c.subscriptions {
		p.acked = max(p.acked, p.written)
	}
}

// preparePing prepares a ping whose pong will confirm what is written now, and reports whether there is anything to
// confirm. asked says that a pong that confirms is awaited already.
func (c *cursor) preparePing() (data uint64, confirm, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked = c.pings.pending()
	data, confirm = c.ping()
	return data, confirm, asked
}

// ping is preparePing for who holds mu.
func (c *cursor) ping() (data uint64, confirm bool) {
	if c.pings.pending() {
		return uint64(c.pings.number), true // its pong will come, or the connection is dead
	}
	c.unackedFrames = 0
	if !c.proof.is(ByPong) {
		return c.pings.send(c.written, false), false
	}
	confirm = c.written > c.acked
	for _, p := range c.subscriptions {
		confirm = confirm || p.written > p.acked
		p.pinged = p.written
	}
	return c.pings.send(c.written, confirm), confirm
}

// pong takes the data of a pong, and reports whether it has confirmed what was written before its ping: frames keep
// their order.
func (c *cursor) pong(data uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.proof.is(ByPong) || !c.pings.returns(data) {
		return false
	}
	c.acked = max(c.acked, c.pings.seq)
	for _, p := range c.subscriptions {
		p.acked = max(p.acked, p.pinged)
	}
	return true
}

// awaitsPong reports whether a pong is to confirm something.
func (c *cursor) awaitsPong() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pings.pending()
}

// ack takes an acknowledgement of the mailbox up to a position.
func (c *cursor) ack(seq uint64) (news bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seq > c.handed {
		return false, neverDelivered(seq)
	}
	news = c.proof.acks() || seq > c.acked
	c.acked = max(c.acked, seq)
	return news, nil
}

// ackSpace takes an acknowledgement of a space. before is up to where an earlier edge may have given it.
func (c *cursor) ackSpace(p *subscription, seq, before uint64) (news bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seq > max(p.handed, before) {
		return false, neverDelivered(seq)
	}
	news = c.proof.acks() || seq > p.acked
	p.acked = max(p.acked, seq)
	return news, nil
}

func neverDelivered(seq uint64) error {
	return agora.Errorf(agora.InvalidRequest, "ack: seq %d was never delivered", seq)
}

// mailbox returns the position of what has arrived of the mailbox, of what was written of it, and of what was given to
// be.
func (c *cursor) mailbox() (acked, written, handed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked, c.written, c.handed
}

// hasArrived reports whether what stands somewhere is known to have arrived; so it is of a space that the agent is not
// in.
func (c *cursor) hasArrived(at Place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.Space == "" {
		return at.Seq <= c.acked
	}
	p := c.subscriptions[at.Space]
	return p == nil || at.Seq <= p.acked
}

// position is how far the agent is with its mailbox, but for what the inbox knows of that.
func (c *cursor) position() presence.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return presence.Position{Cursor: c.acked, Written: max(c.handed, c.reread)}
}

// read returns up to where the agent has read its mailbox, as far as those who write to it are concerned.
func (c *cursor) read() uint64 {
	acked, written, _ := c.mailbox()
	if c.proof.is(ByReturn) {
		return max(acked, written)
	}
	return acked
}

// spacePositions returns how far the agent is in its spaces.
func (c *cursor) spacePositions() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := make(map[string]uint64, len(c.subscriptions))
	for name, p := range c.subscriptions {
		at[name] = p.acked
	}
	return at
}

// spacesMoved returns how far the agent is in those of its spaces in which it has moved since the last call; nil for
// none.
func (c *cursor) spacesMoved() (moved map[string]uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, p := range c.subscriptions {
		if p.acked != p.persisted {
			put(&moved, name, p.acked)
			p.persisted = p.acked
		}
	}
	return moved
}

// forgetPersisted makes the next changes tell of every space: the last ones were lost.
func (c *cursor) forgetPersisted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.subscriptions {
		p.persisted = 0
	}
}

// subscription returns that of a space, and how far the agent was given it; nil where it is in none of that name.
func (c *cursor) subscription(space string) (p *subscription, handed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p = c.subscriptions[space]; p != nil {
		handed = p.handed
	}
	return p, handed
}

// handedOf returns how far a subscription was given to the door.
func (c *cursor) handedOf(p *subscription) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.handed
}

// spaces returns the names of the spaces that the agent is in.
func (c *cursor) spaces() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]string, 0, len(c.subscriptions))
	for name := range c.subscriptions {
		names = append(names, name)
	}
	return names
}

// subscribe puts a subscription in, which has been opened at a position, and returns the older one of the same space;
// nil for none. It counts among those of its owner where that one did, or nothing was there.
func (c *cursor) subscribe(p *subscription, opened *spaces.Place, at uint64) (old *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.Place = opened
	p.acked, p.written, p.handed = at, at, at
	old = c.subscriptions[p.Space()]
	put(&c.subscriptions, p.Space(), p)
	p.counted = !c.left
	return old
}

// leave takes all subscriptions out, as nothing of the session is here any more, and returns how many counted.
func (c *cursor) leave() (counted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.subscriptions {
		if p.counted {
			counted++
		}
	}
	c.subscriptions, c.left = nil, true
	return counted
}

// unsubscribe takes the subscription of a space out; nil where there was none.
func (c *cursor) unsubscribe(space string) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.subscriptions[space]
	delete(c.subscriptions, space)
	return p
}

// markReady notes that a subscription may have events, and reports whether that is news. What wakes it before it was
// opened goes for nothing.
func (c *cursor) markReady(p *subscription) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.queued || p.Place == nil {
		return false
	}
	p.queued = true
	c.ready = append(c.ready, p)
	return true
}

// nextReady takes the next subscription that may have events; nil for none.
func (c *cursor) nextReady() *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.ready) > 0 {
		p := c.ready[0]
		c.ready = c.ready[1:]
		p.queued = false
		if c.subscriptions[p.Space()] == p {
			return p
		}
	}
	return nil
}

// held returns the bytes that wait for the agent in its spaces.
func (c *cursor) held() (bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.subscriptions {
		bytes += p.Held()
	}
	return bytes
}
