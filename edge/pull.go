package edge

import (
	"cmp"
	"context"
	"slices"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/spaces"
)

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

// Pull returns what is to be written next, about max bytes of it; nothing
// when there is nothing now: then Wake is called when there is. It may block
// while it reads the log, and calls reads each time before. On an error nothing is lost: wait a moment and pull
// again; UNAVAILABLE while the edge may not deliver (see [ownership.Owner.MayDeliver]). The slice is valid until Written, which
// comes before the next Pull, and before it Queued where that is earlier. Bodies are shared and not to be changed.
func (s *Session) Pull(ctx context.Context, max int, reads func()) ([]Delivery, error) {
	s.receipts.flush(s.conn)
	s.order.pulls(reads)
	ds, err := s.next(ctx, max, reads)
	s.order.pulledSome(len(ds) > 0)
	return ds, err
}

// next is Pull, but for the order among what is written.
func (s *Session) next(ctx context.Context, max int, reads func()) ([]Delivery, error) {
	if !s.begun.Load() {
		return nil, nil
	}
	for {
		if err := s.mayDeliver(); err != nil {
			return nil, err
		}
		var taken int
		var err error
		if !s.withheld {
			taken, err = s.pull(ctx, max, reads)
			s.withheld = len(s.pulled) > 0
		}
		// It may have been read when this edge was no longer the agent's. Then it
		// stays until that is known; if others have the agent, they read it again.
		if err := s.mayDeliver(); err != nil {
			return nil, err
		}
		if s.withheld {
			if !s.markHanded() {
				return nil, nil
			}
			if s.withheld = false; len(s.pulled) == 0 {
				continue
			}
			if s.proof.is(ByPong) && !s.soon.Swap(true) {
				s.schedule(s.node.cfg.Confirm)
			}
			return s.pulled, nil // an error will come again
		}
		if taken == 0 || err != nil {
			s.slim()
			return nil, err
		}
	}
}

// slim lets go of the room that a burst took: a quiet agent keeps none.
func (s *Session) slim() {
	if cap(s.pulled) > roomy {
		s.pulled = nil
	}
}

// roomy is the most deliveries that a quiet session keeps room for.
const roomy = 16

// mayDeliver returns the node's word on whether it delivers. The session is woken when a refusal is over.
func (s *Session) mayDeliver() error {
	err := s.node.owner.MayDeliver()
	if err != nil {
		s.kept.Store(true)
	}
	return err
}

// pull fills pulled, and returns how many messages it has taken for that:
// some are dropped.
func (s *Session) pull(ctx context.Context, max int, reads func()) (taken int, err error) {
	msgs, more := s.inbox.Take(max)
	if more {
		reads()
		msgs, err = s.inbox.Next(ctx, max)
	}
	s.stamp = s.inbox.Stamp()
	s.pulled = slices.Grow(s.pulled, len(msgs))
	for i := range msgs {
		max -= len(msgs[i].Body) + deliveryOverhead
		if d, ok := s.receive(&msgs[i]); ok {
			s.pulled = append(s.pulled, d)
		}
	}
	if err != nil {
		return len(msgs), err
	}
	events, err := s.pullEvents(ctx, max, reads)
	return len(msgs) + events, err
}

// deliveryOverhead is what a delivery counts beside its body.
const deliveryOverhead = 64

// receive decides what becomes of a message of the mailbox.
func (s *Session) receive(m *agora.Message) (Delivery, bool) {
	if m.Kind == agora.Gap {
		return Delivery{Message: m}, true
	}
	if m.Kind == agora.Receipt && !s.concerns(m) {
		return Delivery{}, false
	}
	if m.Meta.Call != "" && !s.called(m) {
		return Delivery{}, false
	}
	peer := agora.ToAgent(s.claim.Tenant, m.From)
	if m.Kind == agora.Control && m.Part == agora.Cancel {
		return Delivery{Message: m, Redelivered: s.redelivered(m)}, s.sender().Cancelled(peer, m.Stream)
	}
	if out := s.outgoing.Load(); out != nil && m.Kind == agora.Request && m.Part == agora.Abort {
		out.Cut(peer, m.Stream)
	}
	if s.suppressed(peer, m) {
		return Delivery{}, false
	}
	if m.Part <= agora.Start && s.actor.grant().Grant != nil {
		s.heardFrom(m.From)
	}
	if m.Part == agora.Cancel {
		s.sender().Cancelled(peer, m.Stream) // a cancel is for both directions of the name
	}
	if m.Kind == agora.Reply && (m.Part == agora.Whole || m.Part == agora.Start) {
		s.sender().Replied(peer, m.Meta.Parent)
	}
	return Delivery{
		Message: m, Redelivered: s.redelivered(m), DeadlineMS: s.untilDeadline(m), span: s.node.cfg.Tracer.Deliver(m),
	}, true
}

// untilDeadline returns the milliseconds left until a message's deadline, at least one; 0 where it has none.
func (s *Session) untilDeadline(m *agora.Message) int64 {
	if m.Meta.Deadline.IsZero() {
		return 0
	}
	return max(1, m.Meta.Deadline.Sub(s.node.cfg.Broker.Now()).Milliseconds())
}

// concerns tells whether a receipt says something to this session: it can be read, and is of no number of a session that is over.
func (s *Session) concerns(receipt *agora.Message) bool {
	r, err := receipt.ReceiptBody()
	return err == nil && (r.Session == "" || r.Session == s.claim.Session)
}

func (s *Session) redelivered(m *agora.Message) bool { return m.Again || m.Seq <= s.markTo }

// suppressed tells whether a part belongs to a stream that this agent has
// cancelled, and follows which streams are open. A start that was stored after
// the cancel begins a stream of its own.
func (s *Session) suppressed(peer agora.Address, m *agora.Message) bool {
	if m.Part == agora.Whole || m.Stream == "" {
		return false
	}
	k := streamKey{peer, m.Stream}
	s.mu.Lock()
	defer s.mu.Unlock()
	since, cancelled := s.cancelled[k]
	switch {
	case cancelled && m.Part == agora.Start && m.Seq > since:
		delete(s.cancelled, k)
		s.unsuppress(k)
	case cancelled:
		return true
	}
	switch {
	case m.Part == agora.Start && len(s.incoming) < maxIncoming:
		put(&s.incoming, k, cmp.Or(m.Meta.Request, m.Meta.Parent))
	case m.Part.Ends():
		delete(s.incoming, k)
	}
	return false
}

// maxIncoming bounds how many open streams to an agent are kept in mind.
const maxIncoming = 4096
