package edge

import (
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/pause"
)

// arrivedUpTo tells the senders of what stands behind after and up to last that it has arrived, though nothing here
// knows what that was: the agent came back and named last, say. A reader of the log finds out; arrivedUpTo does not
// wait for it.
func (o *receiptQueue) arrivedUpTo(after, last uint64) {
	o.hold(after)
	o.readBehind(after, last)
}

// hold is willRead for who does not hold mu: the position stays before what stands behind after until release.
func (o *receiptQueue) hold(after uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.willRead(after)
}

// willRead notes that what stands behind a position is to be read. The caller calls readBehind next. mu is held.
func (o *receiptQueue) willRead(after uint64) {
	o.readers++
	o.reading = lower(o.reading, after+1)
}

// readBehind has a reader do what arrivedUpTo is about.
func (o *receiptQueue) readBehind(after, last uint64) {
	o.node.background(func() {
		o.release(o.readArrived(after, last), after, last)
	})
}

// release ends what hold or willRead began, for what stands behind after and up to last; all says that its senders were
// told.
func (o *receiptQueue) release(all bool, after, last uint64) {
	o.mu.Lock()
	if !all { // the position stays before it, and the agent's next edge reads it
		o.spill = span{lower(o.spill.first, after+1), max(o.spill.last, last)}
	}
	if o.readers--; o.readers == 0 {
		o.reading = 0
	}
	o.mu.Unlock()
	o.markMoved()
}

// readArrived reads what arrivedUpTo is about. It blocks until that is done, and returns false where the session is
// over and the log can't be read.
func (o *receiptQueue) readArrived(after, last uint64) (all bool) {
	inbox := o.node.cfg.Broker.Listen(o.address(), broker.From{After: after}, func() {})
	defer inbox.Close()
	for {
		ms, err := inbox.Next(o.node.ctx, pull)
		switch {
		case err == nil && len(ms) == 0:
			return true
		case err != nil && (o.life.ended() || !pause.For(o.node.ctx, time.Second)):
			return false
		}
		for i := range ms {
			if ms[i].Seq > last {
				return true
			}
			if !o.incoming.withholds(agora.ToAgent(o.claim.Tenant, ms[i].From), &ms[i]) {
				o.arrived(&ms[i])
			}
		}
	}
}

// pull is about how many bytes of the log are read at once.
const pull = 64 << 10

// arrived tells the sender of a message that it was written and has arrived, as far as it asked for that, or that it
// was not as the agent can't take it. It may have been told before.
func (o *receiptQueue) arrived(m *agora.Message) {
	switch {
	case m.Kind == agora.Receipt:
		return
	case m.Kind <= agora.Reply && o.mailbox.bound.excludes(m):
		if m.Part == agora.Whole {
			o.undelivered(m)
		}
		return
	}
	if m.Meta.Receipts&agora.Delivered != 0 {
		o.enqueue(m.From, subjectOf(m), agora.Delivered, m.Seq)
	}
	if m.Meta.Receipts&agora.Acked != 0 {
		o.enqueue(m.From, subjectOf(m), agora.Acked, m.Seq)
	}
}

// lose forgets what the senders of whole messages wanted to know that were handed to the door, and that no reader gets.
// What was not reported as written yet is remembered until it is.
func (o *receiptQueue) lose(at span) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unacked = slices.DeleteFunc(o.unacked, func(r pendingReceipt) bool { return r.isLost(at) })
	if o.writing > 0 && o.writing <= at.last {
		o.lost = append(o.lost, at)
	}
}

// isLost reports whether no reader gets the message, where it gets no whole ones of a part of the mailbox.
func (r pendingReceipt) isLost(at span) bool { return r.whole && at.first <= r.seq && r.seq <= at.last }
