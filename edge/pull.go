package edge

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/framesize"
	"github.com/agora-relay/agora/internal/lock"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/spaces"
)

// mailbox is what waits in an agent's mailbox, and what of it was pulled and not written yet.
type mailbox struct {
	inbox    *broker.Inbox
	markTo   uint64      // frames up to here may have been given to an earlier socket
	begun    atomic.Bool // deliveries may flow
	refused  atomic.Bool // a Pull was, as the edge may not deliver
	withheld bool        // pulled was read and not returned, as the edge may not deliver: the next Pull does; the writer's own, like the next
	bound    frameBound  // of the connection
	pulled   []Delivery  // what the last Pull returned, until Written
	stamp    int64       // when the oldest of pulled was stored, by the log's clock; 0 where that says nothing
}

func (b *mailbox) redelivered(m *agora.Message) bool { return m.Again || m.Seq <= b.markTo }

// slim lets go of the room that a burst took: a quiet agent keeps none.
func (b *mailbox) slim() {
	if cap(b.pulled) > roomy {
		b.pulled = nil
	}
}

// roomy is the most deliveries that a quiet session keeps room for.
const roomy = 16

// puller pulls what a session is to be given. Its methods are the writer's own.
type puller struct{ *Session }

// Pull returns what is to be written next, about max bytes of it; nothing
// when there is nothing now: then Wake is called when there is. It may block
// while it reads the log, and calls reads each time before. On an error nothing is lost: wait a moment and pull
// again; UNAVAILABLE while the edge may not deliver (see [ownership.Owner.MayDeliver]). The slice is valid until Written, which
// comes before the next Pull, and before it Queued where that is earlier. Bodies are shared and not to be changed.
func (s *Session) Pull(ctx context.Context, max int, reads func()) ([]Delivery, error) {
	s.out.receipts.flush(s.conn)
	s.order.pulls(reads)
	ds, err := puller{s}.next(ctx, max, reads)
	s.order.pulledSome(len(ds) > 0)
	return ds, err
}

// next is Pull, but for the order among what is written.
func (s puller) next(ctx context.Context, max int, reads func()) ([]Delivery, error) {
	if !s.mailbox.begun.Load() {
		return nil, nil
	}
	for {
		if err := s.mayDeliver(); err != nil {
			return nil, err
		}
		var taken int
		var err error
		if !s.mailbox.withheld {
			taken, err = s.pull(ctx, max, reads)
			s.mailbox.withheld = len(s.mailbox.pulled) > 0
		}
		// It may have been read when this edge was no longer the agent's. Then it
		// stays until that is known; if others have the agent, they read it again.
		if err := s.mayDeliver(); err != nil {
			return nil, err
		}
		if s.mailbox.withheld {
			var goesOn bool
			if s.mailbox.pulled, goesOn = s.cursor.markHanded(s.mailbox.pulled); !goesOn {
				return nil, nil
			}
			if s.mailbox.withheld = false; len(s.mailbox.pulled) == 0 {
				continue
			}
			if i := slices.IndexFunc(s.mailbox.pulled, func(d Delivery) bool { return d.wantsReceipt() }); i >= 0 {
				s.receiptsOwed().handed(s.mailbox.pulled[i].seq())
			}
			if s.cursor.proof.is(ByPong) && !s.keepalive.soon.Swap(true) {
				keeper(s).schedule(s.node.cfg.Confirm)
			}
			return s.mailbox.pulled, nil // an error will come again
		}
		if taken == 0 || err != nil {
			s.mailbox.slim()
			return nil, err
		}
	}
}

// mayDeliver returns the node's word on whether it delivers. The session is woken when a refusal is over.
func (s puller) mayDeliver() error {
	err := s.node.owner.MayDeliver()
	if err != nil {
		s.mailbox.refused.Store(true)
	}
	return err
}

// pull fills pulled, and returns how many messages it has taken for that:
// some are dropped.
func (s puller) pull(ctx context.Context, max int, reads func()) (taken int, err error) {
	msgs, more := s.mailbox.inbox.Take(max)
	if more {
		reads()
		msgs, err = s.mailbox.inbox.Next(ctx, max)
	}
	s.mailbox.stamp = s.mailbox.inbox.Stamp()
	s.mailbox.pulled = slices.Grow(s.mailbox.pulled, len(msgs))
	for i := range msgs {
		max -= len(msgs[i].Body) + deliveryOverhead
		if d, ok := s.receive(&msgs[i]); ok {
			s.mailbox.pulled = append(s.mailbox.pulled, d)
		}
	}
	if err != nil {
		return len(msgs), err
	}
	events, err := s.pullEvents(ctx, max, reads)
	return len(msgs) + events, err
}

// pullEvents appends what the subscriptions have to what was pulled, and returns how much it took.
func (s puller) pullEvents(ctx context.Context, max int, reads func()) (taken int, err error) {
	blind := s.actor.grant().RefusesWhole(policy.Directory) != ""
	for max > 0 {
		p := s.cursor.nextReady()
		if p == nil {
			return taken, err
		}
		events, more := p.Take(max)
		var nextErr error
		if more {
			reads()
			events, nextErr = p.Next(ctx, max)
		}
		s.mailbox.pulled = slices.Grow(s.mailbox.pulled, len(events))
		for _, e := range events {
			if s.mailbox.stamp == 0 {
				s.mailbox.stamp = e.Stamp
			}
			max -= len(e.Body) + deliveryOverhead
			taken++
			switch {
			case s.drops(e.To, &e.Message) || blind && e.Kind == agora.Roster:
			case s.mailbox.bound.excludes(&e.Message):
				s.mailbox.pulled = append(s.mailbox.pulled, s.leaveOutEvent(p, e))
			default:
				s.mailbox.pulled = append(s.mailbox.pulled, Delivery{Event: e, sub: p})
			}
		}
		if nextErr != nil {
			s.cursor.markReady(p) // for the next Pull: who is told of the error waits before it, and a wake would have it at once
			return taken, nextErr
		}
		if len(events) > 0 {
			member(s).subscriptionReady(p) // until it has none
		}
	}
	return taken, nil
}

// deliveryOverhead is what a delivery counts beside its body.
const deliveryOverhead = 64

// receive decides what becomes of a message of the mailbox.
func (s puller) receive(m *agora.Message) (Delivery, bool) {
	if m.Kind == agora.Gap {
		if out := s.out.lanes.Load(); out != nil {
			out.Missed()
		}
		return Delivery{Message: m}, true
	}
	if m.Kind == agora.Receipt && !s.concerned(m) {
		return Delivery{}, false
	}
	if s.mailbox.bound.excludes(m) {
		return s.leaveOut(s.peer(m.From), m)
	}
	if m.Meta.Call != "" && !s.called(m) {
		return Delivery{}, false
	}
	peer := s.peer(m.From)
	if m.Kind == agora.Control && m.Part == agora.Cancel {
		news := s.out.sender().Cancelled(peer, m.Stream) || m.AbortBody().Code == agora.MessageTooLarge
		return Delivery{Message: m, Redelivered: s.mailbox.redelivered(m)}, news
	}
	if out := s.out.lanes.Load(); out != nil && m.Kind == agora.Request && m.Part == agora.Abort {
		out.Cut(m.Session, m.Stream) // which is the name of its box
	}
	if s.drops(peer, m) {
		return Delivery{}, false
	}
	if m.Part <= agora.Start && s.actor.grant().Grant != nil {
		s.out.heardFrom(m.From)
	}
	if m.Part == agora.Cancel {
		s.out.sender().Cancelled(peer, m.Stream) // a cancel is for both directions of the name
	}
	if m.Kind == agora.Reply && (m.Part == agora.Whole || m.Part == agora.Start) {
		s.out.sender().Replied(peer, m.Meta.Parent)
	}
	return Delivery{
		Message: m, Redelivered: s.mailbox.redelivered(m), DeadlineMS: s.untilDeadline(m), span: s.node.cfg.Tracer.Deliver(m),
	}, true
}

// drops reports whether a part is of a stream that the agent has cancelled, and takes note of what it begins or ends.
func (s puller) drops(peer agora.Address, m *agora.Message) bool {
	drop, again := s.incoming.follow(peer, m)
	if again {
		s.uncancel(peer, m.Stream)
	}
	return drop
}

// uncancel has presence forget a cancelled stream: another one has begun under its name.
func (s puller) uncancel(peer agora.Address, stream string) {
	id := peer.Agent
	if peer.IsSpace() {
		id = agora.AgentID(spaceMark + peer.Space)
	}
	s.node.background(func() {
		// Should it fail, only an agent that resumes behind the new start would miss the rest.
		if err := s.node.cfg.Presence.Lanes.Uncancel(s.node.ctx, s.claim, id, stream); err != nil {
			s.node.cfg.Log.Warn("a cancelled stream was not forgotten", "agent", s.claim.Agent, "err", err)
		}
	})
}

// untilDeadline returns the milliseconds left until a message's deadline, at least one; 0 where it has none.
func (b *binding) untilDeadline(m *agora.Message) int64 {
	if m.Meta.Deadline.IsZero() {
		return 0
	}
	return max(1, m.Meta.Deadline.Sub(b.node.cfg.Broker.Now()).Milliseconds())
}

// concerned reports whether a receipt says something to this session: it can be read, and is of no number of a session that is over. Where it says that
// a request is not given to its receiver, no answer to that is waited for any more.
func (s puller) concerned(receipt *agora.Message) bool {
	r, err := receipt.ReceiptBody()
	if err != nil || r.Session != "" && r.Session != s.claim.Session {
		return false
	}
	if r.Tier == agora.Undelivered {
		s.out.sender().Undelivered(s.peer(receipt.From), r.ID)
	}
	return true
}

// Written takes note that what the last Pull returned has been written, if it returned anything: also of a session whose
// socket is closing, or what its agent heard last would be taken for lost. It never blocks.
func (s *Session) Written() {
	s.order.queued()
	b := &s.mailbox
	if len(b.pulled) == 0 || b.withheld {
		return
	}
	if data, ask := s.cursor.markWritten(b.pulled, s.node.cfg.MaxRecords); ask {
		s.conn.Notify(Notice{Kind: NoticePing, Data: data})
	}
	if b.stamp >= s.since { // what waited for the agent to come says nothing of the way here
		s.node.stats.toWritten.Observe(time.Duration(s.node.cfg.Broker.Now().UnixNano() - b.stamp))
	}
	for i := range b.pulled {
		if b.pulled[i].wantsReceipt() {
			s.receiptsOwed().written(b.pulled[i:])
			break
		}
	}
	clear(b.pulled)
	b.pulled = b.pulled[:0]
	s.markMoved()
}

// order keeps what Pull has returned and what stands between deliveries apart: until its door has put the deliveries into
// the order in which it writes, nothing comes between them.
type order struct {
	lock.Mutex
	pulled bool // deliveries are on their way from Pull to their place; the writer's own
}

// pulls begins a Pull; waits is called where that has to wait.
func (o *order) pulls(waits func()) {
	if !o.TryLock() {
		waits()
		o.Lock()
	}
}

// pulledSome ends a Pull: where it returned something, only once that is queued.
func (o *order) pulledSome(some bool) {
	if o.pulled = some; !some {
		o.Unlock()
	}
}

// queued ends a Pull that has returned something. Idempotent.
func (o *order) queued() {
	if o.pulled {
		o.pulled = false
		o.Unlock()
	}
}

// Queued says that what the last Pull returned has its place in the order of what is written: what the door queues from now on
// stands behind it. Where the door does not say so, Written does.
func (s *Session) Queued() { s.order.queued() }

// Between calls f while no deliveries are on their way from Pull to their place. It blocks while a Pull runs.
func (s *Session) Between(f func()) {
	s.order.Lock()
	defer s.order.Unlock()
	f()
}

// Delivery is one thing to write: a message of the mailbox, or an event of a space.
type Delivery struct {
	Message     *agora.Message // nil where Event is set
	Event       *spaces.Event
	Redelivered bool  // of Message: an earlier socket may have had it
	DeadlineMS  int64 // of Message: time left until its deadline; 0 where it has none
	span        *trace.Span
	sub         *subscription // of Event
}

// seq returns the position of what is delivered.
func (d *Delivery) seq() uint64 {
	if d.Event != nil {
		return d.Event.Seq
	}
	return d.Message.Seq
}

// Place returns where it stands. It measures what it is, which takes a look at all of it.
func (d *Delivery) Place() Place {
	if d.Event != nil {
		return Place{d.Event.To.Space, d.Event.Seq, framesize.Of(&d.Event.Message)}
	}
	return Place{"", d.Message.Seq, framesize.Of(d.Message)}
}

// wantsReceipt reports whether the sender of what is delivered is to be told of it.
func (d *Delivery) wantsReceipt() bool {
	return d.Message != nil && d.Message.Meta.Receipts != 0 && d.Message.Kind != agora.Receipt
}
