package edge

import (
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/trace"
)

// pendingSend is what a session keeps of a message that it has sent until its sender can be told
// what became of it. It is used again, so that a chunk costs no allocation here.
type pendingSend struct {
	from    *outgoing
	to      agora.Address
	frame   string       // id of the frame
	tell    func(Notice) // as of a Want
	stream  string
	n       uint64
	index   uint32
	indexed bool
	want    agora.Receipts
	span    *trace.Span // that ends with it

	done func(broker.Result) // complete, bound once
}

// pending returns what is kept of a message. It is nobody's once it is complete, or was not sent.
func (o *outgoing) pending(m *agora.Message, w Want, want agora.Receipts, span *trace.Span) *pendingSend {
	p := o.node.sends.get()
	*p = pendingSend{from: o, to: m.To.Peer(), frame: w.RequestID, tell: w.Told, stream: m.Stream, n: m.N, index: m.Index, indexed: m.Indexed, want: want, span: span, done: p.done}
	return p
}

// pendingSends hands them out and takes them back.
type pendingSends struct{ pool sync.Pool }

func (s *pendingSends) get() *pendingSend {
	if p, ok := s.pool.Get().(*pendingSend); ok {
		return p
	}
	p := new(pendingSend)
	p.done = p.complete
	return p
}

// complete tells the sender what became of the message. It runs on the broker's goroutine; p is nobody's afterwards.
func (p *pendingSend) complete(res broker.Result) {
	p.span.End(agora.AsError(res.Err))
	if n, ok := p.notice(res); ok {
		switch {
		case p.tell != nil:
			p.tell(n)
		case n.Kind == NoticeReceipt && n.RequestID == "":
			p.from.receipts.add(n, p.from.conn)
		default:
			p.from.conn.Notify(n)
		}
	}
	pool := &p.from.node.sends.pool
	*p = pendingSend{done: p.done}
	pool.Put(p)
}

// notice is what there is to tell.
func (p *pendingSend) notice(res broker.Result) (Notice, bool) {
	if res.Err != nil {
		return Notice{Kind: NoticeFault, RequestID: p.frame, To: p.to, N: p.n, Stream: p.stream, Err: agora.AsError(res.Err)}, true
	}
	p.from.node.stats.sent.Add(1)
	r := Notice{Kind: NoticeReceipt, Tier: agora.Stored, Seq: res.Seq, To: p.to}
	switch {
	case p.n > 0:
		r.N = p.n
	case p.want&agora.Stored == 0:
		return r, false
	case p.frame != "":
		r.RequestID = p.frame
	case p.indexed:
		r.Stream, r.Index = p.stream, p.index
	default:
		return r, false
	}
	return r, true
}
