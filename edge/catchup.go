package edge

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// Catchup reads a session's mailbox from a position on, apart from its Pull: for a reader that could not keep up with
// what Pull brought. What it reads was pulled before, or will be: nothing follows from it for streams, nor for receipts
// but by Lost. Next and Close are for one goroutine at a time.
type Catchup struct {
	in    *inbound
	inbox *broker.Inbox
	kept  []Delivery // read and not returned, as the edge may not deliver
}

// Catchup returns a reading of the mailbox behind a position, which is one that Pull has given. wake is called when
// Next has something, from any goroutine; it must not block, and not call Close. The caller owes it a call of Close.
func (i *inbound) Catchup(after uint64, wake func()) *Catchup {
	tail, at := i.mailbox.inbox.Tail()
	return &Catchup{in: i, inbox: i.node.cfg.Broker.Listen(i.address(), broker.From{After: after, Tail: tail, TailAt: at}, wake)}
}

// Next returns what stands behind what it returned last, about max bytes of it; nothing where all that is stored was
// returned: then wake is called when there is more. It may block while it reads the log. On an error nothing is lost:
// wait a moment and call it again; UNAVAILABLE while the edge may not deliver, and when the session is over here. The
// slice is the caller's; bodies are shared and not to be changed.
func (c *Catchup) Next(ctx context.Context, max int) ([]Delivery, error) {
	if len(c.kept) == 0 {
		msgs, err := c.inbox.Next(ctx, max)
		if err != nil {
			return nil, err
		}
		c.kept = make([]Delivery, len(msgs))
		for k := range msgs {
			m := msgs[k]
			c.kept[k] = Delivery{Message: &m, Redelivered: c.in.mailbox.redelivered(&m), DeadlineMS: c.in.untilDeadline(&m)}
		}
	}
	// What is read is another holder's to deliver where the session has ended meanwhile.
	if err := c.in.mayDeliver(); err != nil {
		return nil, err
	}
	ds := c.kept
	if n := len(ds); n > 0 && !c.in.cursor.markHandedAside(ds[n-1].seq()) {
		return nil, agora.Errorf(agora.Unavailable, "the session is over here")
	}
	c.kept = nil
	return ds, nil
}

// Lost notes that no reader gets the messages from one position to another that are no streams: Pull gave them, and the
// log lost them before they were read again. Their senders are not told that they have arrived, if Lost comes before
// the Ack of their positions. It may be called from any goroutine, and does not block.
func (c *Catchup) Lost(first, last uint64) { c.in.owed.Load().lose(span{first, last}) }

// Held returns the bytes that wait for Next.
func (c *Catchup) Held() int { return c.inbox.Held() }

// Close ends the reading; wake is not called after it returns.
func (c *Catchup) Close() { c.inbox.Close() }
