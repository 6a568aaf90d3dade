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

// inbound is what an agent gets: its mailbox and its spaces, how far it has got with them, and what its connection
// shows of that. What takes and writes is for the writing goroutine alone.
type inbound struct {
	*binding
	out       *outgoing
	incoming  incoming
	cursor    cursor
	owed      atomic.Pointer[receiptQueue] // receipts to be told to the senders of what this agent got; nil while there never was one
	mailbox   mailbox
	order     order
	keepalive keepalive
}

// Pull returns what is to be written next, about max bytes of it; nothing when there is nothing now: then Wake is
// called when there is. It may block while it reads the log, and calls reads each time before. On an error nothing is
// lost: wait a moment and pull again; UNAVAILABLE while the edge may not deliver (see [ownership.Owner.MayDeliver]).
// The slice is valid until Written, which comes before the next Pull, and before it Queued where that is earlier.
// Bodies are shared and not to be changed.
func (i *inbound) Pull(ctx context.Context, max int, reads func()) ([]Delivery, error) {
	if i.mailbox.begun.Load() { // nothing is due before Begin, which wakes
		i.out.receipts.flush(i.conn)
	}
	i.order.pulls(reads)
	ds, err := i.next(ctx, max, reads)
	i.order.pulledSome(len(ds) > 0)
	return ds, err
}

// next is Pull, but for the order among what is written.
func (i *inbound) next(ctx context.Context, max int, reads func()) ([]Delivery, error) {
	if !i.mailbox.begun.Load() {
		return nil, nil
	}
	for {
		if err := i.mayDeliver(); err != nil {
			return nil, err
		}
		var taken int
		var err error
		if !i.mailbox.withheld {
			taken, err = i.pull(ctx, max, reads)
			i.mailbox.withheld = len(i.mailbox.pulled) > 0
		}
		// It may have been read when this edge was no longer the agent's. Then it
		// stays until that is known; if others have the agent, they read it again.
		if err := i.mayDeliver(); err != nil {
			return nil, err
		}
		if i.mailbox.withheld {
			var goesOn bool
			if i.mailbox.pulled, goesOn = i.cursor.markHanded(i.mailbox.pulled); !goesOn {
				return nil, nil
			}
			if i.mailbox.withheld = false; len(i.mailbox.pulled) == 0 {
				continue
			}
			if k := slices.IndexFunc(i.mailbox.pulled, func(d Delivery) bool { return d.wantsReceipt() }); k >= 0 {
				i.receiptsOwed().handed(i.mailbox.pulled[k].seq())
			}
			if i.cursor.proof.is(ByPong) && !i.keepalive.soon.Swap(true) {
				i.schedule(i.node.cfg.Confirm)
			}
			return i.mailbox.pulled, nil // an error will come again
		}
		if taken == 0 || err != nil {
			i.mailbox.slim()
			return nil, err
		}
	}
}

// mayDeliver returns the node's word on whether it delivers. The session is woken when a refusal is over.
func (i *inbound) mayDeliver() error {
	err := i.node.owner.MayDeliver()
	if err != nil {
		i.mailbox.refused.Store(true)
	}
	return err
}

// pull fills pulled, and returns how many messages it has taken for that:
// some are dropped.
func (i *inbound) pull(ctx context.Context, max int, reads func()) (taken int, err error) {
	msgs, more := i.mailbox.inbox.Take(max)
	if more {
		reads()
		msgs, err = i.mailbox.inbox.Next(ctx, max)
	}
	i.mailbox.stamp = i.mailbox.inbox.Stamp()
	i.mailbox.pulled = slices.Grow(i.mailbox.pulled, len(msgs))
	for k := range msgs {
		max -= len(msgs[k].Body) + deliveryOverhead
		if d, ok := i.receive(&msgs[k]); ok {
			i.mailbox.pulled = append(i.mailbox.pulled, d)
		}
	}
	if err != nil {
		return len(msgs), err
	}
	events, err := i.pullEvents(ctx, max, reads)
	return len(msgs) + events, err
}

// pullEvents appends what the subscriptions have to what was pulled, and returns how much it took.
func (i *inbound) pullEvents(ctx context.Context, max int, reads func()) (taken int, err error) {
	blind := i.actor.grant().RefusesWhole(policy.Directory) != ""
	for max > 0 {
		p := i.cursor.nextReady()
		if p == nil {
			return taken, err
		}
		events, more := p.Take(max)
		var nextErr error
		if more {
			reads()
			events, nextErr = p.Next(ctx, max)
		}
		i.mailbox.pulled = slices.Grow(i.mailbox.pulled, len(events))
		for _, e := range events {
			if i.mailbox.stamp == 0 {
				i.mailbox.stamp = e.Stamp
			}
			max -= len(e.Body) + deliveryOverhead
			taken++
			switch {
			case i.drops(e.To, &e.Message) || blind && e.Kind == agora.Roster:
			case i.mailbox.bound.excludes(&e.Message):
				i.mailbox.pulled = append(i.mailbox.pulled, i.leaveOutEvent(p, e))
			default:
				i.mailbox.pulled = append(i.mailbox.pulled, Delivery{Event: e, sub: p})
			}
		}
		if nextErr != nil {
			i.cursor.markReady(p) // for the next Pull: who learns of the error waits before it, and a wake would have it at once
			return taken, nextErr
		}
		if len(events) > 0 {
			i.subscriptionReady(p) // until it has none
		}
	}
	return taken, nil
}

// deliveryOverhead is what a delivery counts beside its body.
const deliveryOverhead = 64

// receive decides what becomes of a message of the mailbox.
func (i *inbound) receive(m *agora.Message) (Delivery, bool) {
	peer := i.peer(m.From)
	if i.mailbox.bound.excludes(m) {
		return i.leaveOut(peer, m)
	}
	dropped := m.Kind != agora.Control && i.drops(peer, m)
	if !i.out.heard(m, dropped) || dropped {
		return Delivery{}, false
	}
	if m.Kind == agora.Gap {
		return Delivery{Message: m}, true
	}
	if m.Part <= agora.Start && i.actor.grant().Grant != nil {
		i.out.heardFrom(m.From)
	}
	return Delivery{
		Message: m, Redelivered: i.mailbox.redelivered(m), DeadlineMS: i.untilDeadline(m), span: i.node.cfg.Tracer.Deliver(m),
	}, true
}

// drops reports whether a part is of a stream that the agent has cancelled, and notes what it begins or ends.
func (i *inbound) drops(peer agora.Address, m *agora.Message) bool {
	drop, again := i.incoming.follow(peer, m)
	if again {
		i.uncancel(peer, m.Stream)
	}
	return drop
}

// uncancel has presence forget a cancelled stream: another one has begun under its name.
func (i *inbound) uncancel(peer agora.Address, stream string) {
	id := peer.Agent
	if peer.IsSpace() {
		id = agora.AgentID(spaceMark + peer.Space)
	}
	i.node.background(func() {
		// Should it fail, only an agent that resumes behind the new start would miss the rest.
		if err := i.node.cfg.Presence.Lanes.Uncancel(i.node.ctx, i.claim, id, stream); err != nil {
			i.node.cfg.Log.Warn("a cancelled stream was not forgotten", "agent", i.claim.Agent, "err", err)
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

// Written notes that what the last Pull returned has been written, if it returned anything: also of a session
// whose socket is closing, or what its agent heard last would be taken for lost. It never blocks.
func (i *inbound) Written() {
	i.order.queued()
	b := &i.mailbox
	if len(b.pulled) == 0 || b.withheld {
		return
	}
	if data, ask := i.cursor.markWritten(b.pulled, i.node.cfg.MaxRecords); ask {
		i.conn.Notify(Notice{Kind: NoticePing, Data: data})
	}
	if b.stamp >= i.since { // what waited for the agent to come says nothing of the way here
		i.node.stats.toWritten.Observe(time.Duration(i.node.cfg.Broker.Now().UnixNano() - b.stamp))
	}
	for k := range b.pulled {
		if b.pulled[k].wantsReceipt() {
			i.receiptsOwed().written(b.pulled[k:])
			break
		}
	}
	clear(b.pulled)
	b.pulled = b.pulled[:0]
	i.markMoved()
}

// order keeps what Pull has returned and what stands between deliveries apart: until its door has put the deliveries
// into the order in which it writes, nothing comes between them.
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

// Queued says that what the last Pull returned has its place in the order of what is written: what the door queues from
// now on stands behind it. Where the door does not say so, Written does.
func (i *inbound) Queued() { i.order.queued() }

// Between calls f while no deliveries are on their way from Pull to their place. It blocks while a Pull runs.
func (i *inbound) Between(f func()) {
	i.order.Lock()
	defer i.order.Unlock()
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
