package edge

import (
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/trace"
)

// ticket is what a session keeps of a message until its sender can be told
// what became of it. It is used again, so that a chunk costs no allocation here.
type ticket struct {
	session *Session
	to      agora.Address
	frame   string       // id of the frame
	tell    func(Notice) // as of a Want
	stream  string
	n       uint64
	index   uint32
	indexed bool
	want    agora.Receipts
	span    *trace.Span // that ends with it

	told func(broker.Result) // outcome, bound once
}

// ticket returns the ticket of a message. It is nobody's once its outcome was told.
func (s *Session) ticket(m *agora.Message, w Want, want agora.Receipts, span *trace.Span) *ticket {
	t := s.node.tickets.get()
	*t = ticket{session: s, to: m.To.Peer(), frame: w.RequestID, tell: w.Told, stream: m.Stream, n: m.N, index: m.Index, indexed: m.Indexed, want: want, span: span, told: t.told}
	return t
}

// told tells the sender what became of a chunk that it gave no id, and of which no ticket is kept.
func (s *Session) told(to agora.Address, res broker.Result) {
	to = to.Peer()
	if res.Err != nil {
		s.conn.Notify(Notice{Kind: NoticeFault, To: to, N: res.N, Stream: res.Stream, Err: agora.AsError(res.Err)})
		return
	}
	s.node.stats.sent.Add(1)
	if res.N > 0 {
		s.receipts.add(Notice{Kind: NoticeReceipt, Tier: agora.Stored, Seq: res.Seq, To: to, N: res.N}, s.conn)
	}
}

// tickets hands out tickets and takes them back.
type tickets struct{ pool sync.Pool }

func (p *tickets) get() *ticket {
	if t, ok := p.pool.Get().(*ticket); ok {
		return t
	}
	t := new(ticket)
	t.told = t.outcome
	return t
}

// outcome tells the sender. It runs on the broker's goroutine; t is nobody's afterwards.
func (t *ticket) outcome(res broker.Result) {
	t.span.End(agora.AsError(res.Err))
	if n, ok := t.notice(res); ok {
		switch {
		case t.tell != nil:
			t.tell(n)
		case n.Kind == NoticeReceipt && n.RequestID == "":
			t.session.receipts.add(n, t.session.conn)
		default:
			t.session.conn.Notify(n)
		}
	}
	pool := &t.session.node.tickets.pool
	*t = ticket{told: t.told}
	pool.Put(t)
}

// notice is what there is to tell.
func (t *ticket) notice(res broker.Result) (Notice, bool) {
	if res.Err != nil {
		return Notice{Kind: NoticeFault, RequestID: t.frame, To: t.to, N: t.n, Stream: t.stream, Err: agora.AsError(res.Err)}, true
	}
	t.session.node.stats.sent.Add(1)
	r := Notice{Kind: NoticeReceipt, Tier: agora.Stored, Seq: res.Seq, To: t.to}
	switch {
	case t.n > 0:
		r.N = t.n
	case t.want&agora.Stored == 0:
		return r, false
	case t.frame != "":
		r.RequestID = t.frame
	case t.indexed:
		r.Stream, r.Index = t.stream, t.index
	default:
		return r, false
	}
	return r, true
}
