package edge

import (
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/pause"
)

// arrivedUpTo tells the senders of what stands behind after and up to last that it has arrived, though nothing here knows what that was:
// the agent came back and named last, say. A reader of the log finds out; arrivedUpTo does not wait for it.
func (o *receiptQueue) arrivedUpTo(after, last uint64) {
	o.mu.Lock()
	o.readers++
	o.reading = lower(o.reading, after+1)
	o.mu.Unlock()
	o.node.background(func() {
		o.readArrived(after, last)
		o.mu.Lock()
		if o.readers--; o.readers == 0 {
			o.reading = 0
		}
		o.mu.Unlock()
		o.moved()
	})
}

// readArrived reads what arrivedUpTo is about. It blocks until that is done, or the session is over.
func (o *receiptQueue) readArrived(after, last uint64) {
	inbox := o.node.cfg.Broker.Listen(o.address(), broker.From{After: after}, func() {})
	defer inbox.Close()
	for !o.life.ended() {
		ms, err := inbox.Next(o.node.ctx, pull)
		if err != nil && !pause.For(o.node.ctx, time.Second) || err == nil && len(ms) == 0 {
			return
		}
		for i := range ms {
			if ms[i].Seq > last {
				return
			}
			o.arrived(&ms[i])
		}
	}
}

// pull is about how many bytes of the log are read at once.
const pull = 64 << 10

// arrived tells the sender of a message that it was written and has arrived, as far as it asked for that. It may have been told before.
func (o *receiptQueue) arrived(m *agora.Message) {
	if m.Kind == agora.Receipt {
		return
	}
	if m.Meta.Receipts&agora.Delivered != 0 {
		o.enqueue(m.From, subjectOf(m), agora.Delivered, m.Seq)
	}
	if m.Meta.Receipts&agora.Acked != 0 {
		o.enqueue(m.From, subjectOf(m), agora.Acked, m.Seq)
	}
}
