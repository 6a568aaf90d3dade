package edge

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/framesize"
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
