package edge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/pause"
)

// receiptBox gathers cumulative receipts until the writer comes for them: of
// each lane, and of each stream, the last one says it all.
type receiptBox struct {
	mu  sync.Mutex // guards box
	box map[streamKey]Notice
}

func (b *receiptBox) add(r Notice, conn Conn) {
	b.mu.Lock()
	first := len(b.box) == 0
	if b.box == nil {
		b.box = map[streamKey]Notice{}
	}
	b.box[streamKey{r.To, r.Stream}] = r
	b.mu.Unlock()
	if first {
		conn.Wake()
	}
}

func (b *receiptBox) flush(conn Conn) {
	b.mu.Lock()
	box := b.box
	b.box = nil
	b.mu.Unlock()
	for _, r := range box {
		conn.Notify(r)
	}
}

// receiptQueue is what this agent's edge still has to tell the senders of what it got.
type receiptQueue struct {
	mu      sync.Mutex       // guards the fields below
	unacked []pendingReceipt // written, not yet known to have arrived
	spill   span             // where those stand that found no room in unacked: the log has them
	toTell  map[agora.AgentID]*senderReceipts

	readers int    // that look in the log for what else is to be told
	reading uint64 // the lowest position at which one of them began; 0 for none
}

// span is a part of a mailbox, by positions; the zero one is none.
type span struct{ first, last uint64 }

// lowestUntold returns the lowest position of what senders are just being told of; 0 for none.
func (o *receiptQueue) lowestUntold() (low uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	low = o.reading
	for _, a := range o.toTell {
		low = lower(low, lower(a.low, a.sent))
	}
	return low
}

// lower returns the lower of two positions, of which 0 is none.
func lower(a, b uint64) uint64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// pendingReceipts returns the queue of receipts to be told, which most agents never need.
func (s *Session) pendingReceipts() *receiptQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = new(receiptQueue)
	}
	return s.pending
}

// pendingReceipt is a message whose sender wants to know that it arrived.
type pendingReceipt struct {
	from  agora.AgentID
	seq   uint64
	what  subject
	tiers agora.Receipts // to be told
}

// subject names a message in a receipt, as its sender named it.
type subject struct {
	id      string // the client's id of the frame
	n       uint64
	session string // of the sender, whose number n is
	stream  string
	index   uint32
}

// senderReceipts is what is to be told to one sender. At most one receipt of it is
// under way; what comes meanwhile gathers.
type senderReceipts struct {
	busy bool
	ids  []tiered
	n    map[tiered]uint64 // highest number, by session and tier
	at   map[tiered]uint32 // highest index, by stream and tier
	low  uint64            // lowest position of what it holds; 0 for none
	sent uint64            // the same of what is under way
}

type tiered struct {
	name string
	tier agora.Receipts
}

// maxPendingReceipts bounds the receipts that wait for an acknowledgement in memory; older ones are looked up in the log when it comes.
const maxPendingReceipts = 8192

func subjectOf(m *agora.Message) subject {
	switch {
	case m.N > 0:
		return subject{n: m.N, session: m.Session}
	case m.ID != "":
		return subject{id: ClientID(m.ID)}
	case m.Indexed:
		return subject{stream: m.Stream, index: m.Index}
	}
	return subject{}
}

// receiptsWritten tells senders that what they sent was written to the socket,
// and remembers who wants to know that it arrived.
func (s *Session) receiptsWritten(written []Delivery, tier agora.Receipts) {
	owes, later := false, agora.Acked
	if s.proof.is(ByReader) {
		tier, later = 0, agora.Acked|agora.Delivered
	}
	for i := range written {
		m := written[i].Message
		if m == nil || m.Meta.Receipts == 0 || m.Kind == agora.Receipt {
			continue
		}
		what := subjectOf(m)
		if m.Meta.Receipts&tier != 0 {
			s.enqueueReceipt(m.From, what, agora.Delivered, m.Seq)
		}
		if due := m.Meta.Receipts & later; due != 0 {
			o := s.pendingReceipts()
			o.mu.Lock()
			o.unacked = append(o.unacked, pendingReceipt{m.From, m.Seq, what, due})
			if over := len(o.unacked) - maxPendingReceipts; over > 0 {
				o.spill.first, o.spill.last = lower(o.spill.first, o.unacked[0].seq), o.unacked[over-1].seq
				o.unacked = o.unacked[over:]
			}
			o.mu.Unlock()
			owes = true
		}
	}
	if owes {
		s.receiptsAcked() // of what was acknowledged before it was written once more
	}
}

// receiptsAcked tells senders that what they sent is known to have arrived.
func (s *Session) receiptsAcked() {
	s.mu.Lock()
	confirmed, o := s.acked, s.pending
	s.mu.Unlock()
	if o == nil {
		return
	}
	o.mu.Lock()
	var due []pendingReceipt
	for len(o.unacked) > 0 && o.unacked[0].seq <= confirmed {
		due = append(due, o.unacked[0])
		o.unacked = o.unacked[1:]
	}
	spill := o.spill
	if spill.last > confirmed {
		spill = span{}
	} else {
		o.spill = span{}
	}
	o.mu.Unlock()
	if spill.last > 0 {
		s.arrivedUpTo(spill.first-1, spill.last)
	}
	for _, d := range due {
		for _, tier := range []agora.Receipts{agora.Delivered, agora.Acked} {
			if d.tiers&tier != 0 {
				s.enqueueReceipt(d.from, d.what, tier, d.seq)
			}
		}
	}
}

// enqueueReceipt enters a receipt into its sender's account, and sends it unless one is under way.
// seq is where in the mailbox the message stands.
func (s *Session) enqueueReceipt(to agora.AgentID, what subject, tier agora.Receipts, seq uint64) {
	o := s.pendingReceipts()
	o.mu.Lock()
	if o.toTell == nil {
		o.toTell = map[agora.AgentID]*senderReceipts{}
	}
	a := o.toTell[to]
	if a == nil {
		a = &senderReceipts{n: map[tiered]uint64{}, at: map[tiered]uint32{}}
		o.toTell[to] = a
	}
	a.add(what, tier, seq)
	busy := a.busy
	a.busy = true
	o.mu.Unlock()
	if !busy {
		s.flushReceipts(to, a)
	}
}

// add adds a receipt. One by number or index stands for all before it.
func (a *senderReceipts) add(what subject, tier agora.Receipts, seq uint64) {
	a.low = lower(a.low, seq)
	switch {
	case what.n > 0:
		k := tiered{what.session, tier}
		a.n[k] = max(a.n[k], what.n)
	case what.stream != "":
		k := tiered{what.stream, tier}
		a.at[k] = max(a.at[k], what.index)
	case what.id != "":
		a.ids = append(a.ids, tiered{what.id, tier})
	}
}

// flushReceipts sends what an account holds, and again what has gathered when that is stored, or was refused for the moment.
func (s *Session) flushReceipts(to agora.AgentID, a *senderReceipts) {
	o := s.pendingReceipts()
	o.mu.Lock()
	due := a.drain()
	if len(due) == 0 {
		a.busy = false
		delete(o.toTell, to)
		defer s.markMoved() // what was held back for this is not any more
	}
	o.mu.Unlock()
	var left atomic.Int32 // of due, not answered yet
	left.Store(int32(len(due)))
	var refused atomic.Bool
	for _, r := range due {
		answered := func(err error) {
			if forNow(err) {
				refused.Store(true)
				o.mu.Lock()
				a.add(r.what, r.tier, a.sent)
				o.mu.Unlock()
			}
			if left.Add(-1) == 0 {
				s.node.background(func() { s.flushAgain(to, a, refused.Load()) })
			}
		}
		m := r.message()
		m.From, m.To = s.claim.Agent, agora.ToAgent(s.claim.Tenant, to)
		if err := s.sender().Send(s.node.ctx, m, relay.Options{}, func(res broker.Result) { answered(res.Err) }); err != nil {
			answered(err)
		} else {
			s.slot.MarkActive()
		}
	}
}

// flushAgain goes on with an account; after a moment where receipts were refused, unless the session is over: then who gets it next tells
// what it finds in the log.
func (s *Session) flushAgain(to agora.AgentID, a *senderReceipts, refused bool) {
	if refused && (s.ended() || !pause.For(s.node.ctx, time.Second)) {
		o := s.pendingReceipts()
		o.mu.Lock()
		defer o.mu.Unlock()
		a.busy = false
		return
	}
	s.flushReceipts(to, a)
}

// flushAll waits until nothing is under way, receipts included: what gathers while others are under way follows them.
func (s *Session) flushAll(ctx context.Context) error {
	for {
		err := s.sender().Flush(ctx)
		if err != nil || !s.pendingReceipts().busy() || !pause.For(ctx, 5*time.Millisecond) {
			return err
		}
	}
}

// busy tells whether a receipt is under way.
func (o *receiptQueue) busy() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.toTell {
		if a.busy {
			return true
		}
	}
	return false
}

// ended tells whether the session takes no verb any more.
func (s *Session) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// forNow tells whether what was refused may be taken in a moment.
func forNow(err error) bool {
	e := agora.AsError(err)
	return e != nil && (e.Code == agora.Unavailable || e.Code == agora.RateLimited)
}

// receipt is what is told of one message, or of all up to it.
type receipt struct {
	what subject
	tier agora.Receipts
}

// drain empties the account.
func (a *senderReceipts) drain() (due []receipt) {
	for _, t := range a.ids {
		due = append(due, receipt{subject{id: t.name}, t.tier})
	}
	for t, n := range a.n {
		due = append(due, receipt{subject{session: t.name, n: n}, t.tier})
	}
	for t, index := range a.at {
		due = append(due, receipt{subject{stream: t.name, index: index}, t.tier})
	}
	a.low, a.sent = 0, a.low
	a.ids = nil
	clear(a.n)
	clear(a.at)
	return due
}

// message is the receipt as it is sent.
func (r receipt) message() agora.Message {
	w := r.what
	return agora.ReceiptBody{Tier: r.tier, ID: w.id, Session: w.session, N: w.n, Stream: w.stream, Index: w.index}.Message()
}
