package edge

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/trace"
)

// asker hears of one message of which more is to be done than to tell the connection.
type asker struct {
	out    *outgoing
	tell   func(Notice) // as of a Command, like the next
	failed func()
	span   *trace.Span // that ends with it
}

// Told tells what became of the message. It runs on the broker's goroutine.
func (a *asker) Told(t relay.Sent) {
	a.span.End(agora.AsError(t.Err))
	if t.Err != nil && a.failed != nil {
		a.failed()
	}
	switch n, ok := a.out.notice(&t); {
	case !ok:
	case a.tell != nil:
		a.tell(n)
	default:
		a.out.hand(n)
	}
}

// Told tells the agent what became of what it has sent. It runs on the broker's goroutine.
func (o *outgoing) Told(t relay.Sent) {
	if n, ok := o.notice(&t); ok {
		o.hand(n)
	}
}

// hand gives a notice to the connection: a cumulative receipt with the next that are written.
func (o *outgoing) hand(n Notice) {
	if n.Kind == NoticeReceipt && n.RequestID == "" {
		o.receipts.add(n, o.conn)
		return
	}
	o.conn.Notify(n)
}

// notice is what there is to tell.
func (o *outgoing) notice(t *relay.Sent) (Notice, bool) {
	if t.Err != nil {
		return Notice{Kind: NoticeFault, RequestID: t.Frame, To: t.To, N: t.N, Stream: t.Stream, Err: agora.AsError(t.Err)}, true
	}
	o.node.stats.sent.Add(1)
	r := Notice{Kind: NoticeReceipt, Tier: agora.Stored, Seq: t.Seq, To: t.To}
	switch {
	case t.N > 0:
		r.N = t.N
	case t.Receipts&agora.Stored == 0:
		return r, false
	case t.Frame != "":
		r.RequestID = t.Frame
	case t.Indexed:
		r.Stream, r.Index = t.Stream, t.Index
	default:
		return r, false
	}
	return r, true
}
