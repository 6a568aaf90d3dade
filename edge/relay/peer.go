package relay

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/lock"
	"github.com/agora-relay/agora/presence"
)

const (
	knownFor   = 5 * time.Second        // how long "known" is believed without asking
	askFor     = 500 * time.Millisecond // how long presence is asked for one who was known before
	askAgain   = time.Second            // between two questions while presence does not answer
	checkFirst = 64                     // records stored by this edge before it looks at an addressee's unread part
	checkShare = 16                     // which part of what is free may be stored between two looks: as many edges as that may write
	checkLeast = 16                     // records between two looks, however little is free
	recheck    = 250 * time.Millisecond // between two looks while it is full
	pause      = 200 * time.Millisecond // between two records of a lane while the addressee is full
)

// peer is an addressee as this edge's senders see it.
type peer struct {
	relay *Relay
	to    agora.Address

	wrote    atomic.Int64                    // ticks at the last record stored since presence was told; 0 for none
	lanes    atomic.Int32                    // that point here
	records  atomic.Int32                    // that may be stored until the next look
	checking atomic.Bool                     // a look is under way
	full     atomic.Bool                     // its unread part has passed three quarters of the mailbox
	looked   atomic.Int64                    // ticks at the last look
	slow     atomic.Pointer[[]agora.AgentID] // senders whose lanes are slowed, though it is not full; nil for none

	sent atomic.Int64 // of a box: bytes that were put into it, also the next two
	seen atomic.Int64 // how many when it was last looked at
	over atomic.Bool  // so much is unread that its answer is given up

	known  atomic.Int64 // ticks when it was last found to be there; 0 for never
	asking lock.Mutex   // held while presence is asked for it; guards the field below
	failed time.Time    // when presence last did not answer, and it was believed to be there

	mu     sync.Mutex // guards the field below
	before int64      // of a box: bytes that others had put into it
}

// peer returns the one of an address, making it where it is missing.
func (r *Relay) peer(to agora.Address) *peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.peers[to]
	if p == nil {
		p = &peer{relay: r, to: to}
		// Streams that go at one pace are not all looked at in one moment.
		p.records.Store(checkFirst + rand.Int32N(int32(min(max(r.cfg.MaxRecords*3/4/checkShare-checkFirst, 1), math.MaxInt32))))
		r.peers[to] = p
	}
	return p
}

// isKnown reports whether the agent was found to be there a moment ago: asked again it need not be, unless being away
// matters.
func (p *peer) isKnown() bool {
	at := p.known.Load()
	return at != 0 && agora.Ticks()-at < int64(knownFor) && !p.relay.cfg.MailboxOff
}

// lookup returns nil when the agent can be written to. Only "yes" is remembered, and not even that when being away
// matters. While presence does not answer, one who was known within the life of a record is believed to be there still,
// for as long as this edge holds its lease: what is stored for it waits in its mailbox.
func (p *peer) lookup(ctx context.Context) error {
	cfg := &p.relay.cfg
	if err := p.asking.LockContext(ctx); err != nil {
		return err
	}
	defer p.asking.Unlock()
	if p.isKnown() {
		return nil
	}
	wait, believed := cfg.Answer, p.believed()
	if believed {
		if time.Since(p.failed) < askAgain {
			return nil
		}
		wait = min(wait, askFor)
	}
	ask, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	found, err := cfg.Presence.Addressees.Lookup(ask, p.to.Tenant, p.to.Agent)
	switch {
	case err != nil && believed && ctx.Err() == nil && agora.AsError(err).Code == agora.Unavailable:
		p.failed = time.Now()
		return nil
	case err != nil:
		return err
	case found.State == presence.Unknown:
		p.known.Store(0)
		return agora.UnknownAgent(p.to.Agent)
	case found.State == presence.BarePeer:
		return agora.Errorf(agora.InvalidRequest, "agent %q is a peer of libp2p, and reachable by handoff only", p.to.Agent)
	case found.State == presence.Away && cfg.MailboxOff:
		return agora.Errorf(agora.AgentOffline, "agent %q is offline", p.to.Agent)
	}
	p.known.Store(agora.Ticks())
	return nil
}

// believed reports whether the agent is taken for known where presence does not say. The caller holds asking.
func (p *peer) believed() bool {
	cfg := &p.relay.cfg
	if at := p.known.Load(); cfg.MailboxOff || at == 0 || agora.Ticks()-at > int64(cfg.MaxAge) {
		return false
	}
	_, holds := cfg.Valid()
	return holds
}

// stored notes a record that this edge has stored for the peer, and looks at
// the unread part now and then: in the background, one look at a time.
func (p *peer) stored() {
	p.wrote.Store(agora.Ticks())
	if p.records.Add(-1) <= 0 || p.to.IsBox() && p.sent.Load()-p.seen.Load() >= boxLook {
		p.look()
	}
}

// pressed reports whether the peer's unread part is too large to add to.
func (p *peer) pressed() bool {
	if !p.full.Load() && p.slow.Load() == nil {
		return false
	}
	if agora.Ticks()-p.looked.Load() > int64(recheck) {
		p.look()
	}
	return p.full.Load()
}

// slowFor notes which senders' lanes are to be slowed.
func (p *peer) slowFor(senders []agora.AgentID) {
	if len(senders) == 0 {
		p.slow.Store(nil)
		return
	}
	p.slow.Store(&senders)
}

// slows reports whether the peer does not keep up with the streams of one sender.
func (p *peer) slows(sender agora.AgentID) bool {
	slow := p.slow.Load()
	return slow != nil && slices.Contains(*slow, sender)
}

func (p *peer) look() {
	if p.to.IsSpace() || !p.checking.CompareAndSwap(false, true) {
		return
	}
	r := p.relay
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return // and checking stays set: nobody looks any more
	}
	r.checks.Go(func() {
		defer p.checking.Store(false)
		p.records.Store(checkFirst)
		p.measure()
		p.looked.Store(agora.Ticks())
	})
}

// measure compares what the agent has not read with the size of its mailbox.
func (p *peer) measure() {
	cfg := &p.relay.cfg
	ctx, cancel := context.WithTimeout(p.relay.ctx, 2*time.Second)
	defer cancel()
	if p.to.IsBox() {
		p.measureBox(ctx)
		return
	}
	found, err := cfg.Presence.Addressees.Lookup(ctx, p.to.Tenant, p.to.Agent)
	if err != nil {
		return // what was known stays
	}
	cursor := found.Cursor
	if found.State == presence.Online {
		if c, err := cfg.Confirmed(ctx, p.to, found.Holder); err == nil {
			cursor = max(cursor, c.Cursor)
			p.slowFor(c.Slow)
		}
	} else {
		p.slowFor(nil)
	}
	unread, err := cfg.Broker.Unread(ctx, p.to, cursor)
	if err != nil {
		return
	}
	free := cfg.MaxRecords*3/4 - int64(unread)
	p.full.Store(free <= 0)
	p.records.Store(int32(min(max(free/checkShare, checkLeast), math.MaxInt32)))
}

// measureBox compares what was put into a box with what its callers have taken.
func (p *peer) measureBox(ctx context.Context) {
	sent := p.sent.Load()
	taken, waits, err := p.relay.cfg.Taken(ctx, p.to)
	if err != nil {
		return // what was known stays
	}
	p.mu.Lock()
	if p.before == 0 && taken > sent { // what was put there before the session came here
		p.before = taken - sent
	}
	unread := sent + p.before - taken
	p.mu.Unlock()
	if !waits {
		unread = 0 // nobody will read: the agent is told
	}
	p.full.Store(unread >= boxRoom)
	p.over.Store(unread >= boxMost)
	p.seen.Store(sent)
}

// Post stores a whole message to an agent outside any lane: that of one who has no session anywhere. key is its
// idempotency key for the whole cluster. It blocks until the message is stored. AGENT_NOT_FOUND, AGENT_OFFLINE,
// RATE_LIMITED while the mailbox is nearly full, MESSAGE_TOO_LARGE, UNAVAILABLE. payer is the principal whose share of
// the log it takes; empty for none.
func (r *Relay) Post(ctx context.Context, payer, key string, m agora.Message) (seq uint64, err error) {
	if !m.To.IsBox() { // whose caller waits, or has its mailbox
		if err := r.Reach(ctx, m.To); err != nil {
			return 0, agora.AsError(err)
		}
	}
	seq, err = r.cfg.Broker.PublishFor(ctx, payer, key, m)
	if err != nil {
		return 0, agora.AsError(err)
	}
	r.Wrote(m.To)
	return seq, nil
}

// Reach returns nil when an agent can be written to outside any lane: it is known, and its mailbox is not nearly full.
// AGENT_NOT_FOUND, AGENT_OFFLINE, RATE_LIMITED, UNAVAILABLE.
func (r *Relay) Reach(ctx context.Context, to agora.Address) error {
	if r.cfg.Broker.Lost() {
		return logAway()
	}
	p := r.peer(to)
	if err := p.lookup(ctx); err != nil {
		return err
	}
	if p.pressed() {
		return errFull
	}
	return nil
}

// Pressed reports whether the mailbox of an agent is nearly full, or else whether the agent does not keep up with the
// streams of one who writes to it. It does not block.
func (r *Relay) Pressed(from agora.AgentID, to agora.Address) (full, slow bool) {
	p := r.peer(to)
	return p.pressed(), p.slows(from)
}

// Wrote notes a message that was stored for an agent outside any lane.
func (r *Relay) Wrote(to agora.Address) { r.peer(to).stored() }

var errFull = &agora.Error{Code: agora.RateLimited, Message: "the mailbox of the addressee is nearly full", RetryAfter: time.Second}

func logAway() *agora.Error {
	return &agora.Error{Code: agora.Unavailable, Message: "the message log can't be reached now", RetryAfter: time.Second}
}
