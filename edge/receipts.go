package edge

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/pause"
)

// receiptQueue is what this agent's edge still has to tell the senders of what it got. A nil one owes nothing.
type receiptQueue struct {
	*inbound

	mu      sync.Mutex       // guards the fields below
	writing uint64           // the lowest position of what is handed to be written and not among unacked yet; 0 for none
	unacked []pendingReceipt // written, not yet known to have arrived
	spill   span             // where those stand that found no room in unacked: the log has them
	lost    []span           // of what is handed to be written: see lose
	toTell  map[agora.AgentID]*senderReceipts

	readers int    // that look in the log for what else is to be told
	reading uint64 // the lowest position at which one of them began; 0 for none
}

// span is a part of a mailbox, by positions; the zero one is none.
type span struct{ first, last uint64 }

// lowestUntold returns the lowest position of what a sender is to be told of; 0 for none.
func (o *receiptQueue) lowestUntold() (low uint64) {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	low = lower(lower(o.reading, o.writing), o.spill.first)
	if len(o.unacked) > 0 {
		low = lower(low, o.unacked[0].seq)
	}
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

// receiptsOwed returns the queue of receipts to be told, which most agents never need.
func (i *inbound) receiptsOwed() *receiptQueue {
	if i.owed.Load() == nil {
		i.owed.CompareAndSwap(nil, &receiptQueue{inbound: i})
	}
	return i.owed.Load()
}

// pendingReceipt is a message whose sender wants to know that it arrived.
type pendingReceipt struct {
	from  agora.AgentID
	seq   uint64
	what  subject
	tiers agora.Receipts // to be told
	whole bool           // it is no part of a stream
}

// subject names a message in a receipt, as its sender named it.
type subject struct {
	id      string // the client's id of the frame
	n       uint64
	session string // of the sender, whose number n is
	stream  string
	index   uint32
	at      uint64 // of what was not delivered: its position in the mailbox
}

// senderReceipts is what is to be told to one sender. At most one receipt of it is
// under way; what comes meanwhile gathers.
type senderReceipts struct {
	busy bool
	not  []subject // delivered
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

// maxPendingReceipts bounds the receipts that wait for an acknowledgement in memory; older ones are looked up in the
// log when it comes.
const maxPendingReceipts = 8192

func subjectOf(m *agora.Message) subject {
	switch {
	case m.N > 0:
		return subject{n: m.N, session: m.Session}
	case m.ID != "":
		return subject{id: m.ClientID()}
	case m.Indexed:
		return subject{stream: m.Stream, index: m.Index}
	}
	return subject{}
}

// handed notes what is about to be written, from a position on, and written is to be told of: it may be
// acknowledged before that.
func (o *receiptQueue) handed(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = seq
	if seq == 0 {
		o.lost = nil
	}
}

// written tells senders that what they sent was written to the socket,
// and remembers who wants to know that it arrived.
func (o *receiptQueue) written(ds []Delivery) {
	owes, tier, later := false, agora.Delivered, agora.Acked
	if o.cursor.proof.is(ByReader) {
		tier, later = 0, agora.Acked|agora.Delivered
	}
	for i := range ds {
		if !ds[i].wantsReceipt() {
			continue
		}
		m := ds[i].Message
		what := subjectOf(m)
		if m.Meta.Receipts&tier != 0 {
			o.enqueue(m.From, what, agora.Delivered, m.Seq)
		}
		if due := m.Meta.Receipts & later; due != 0 {
			o.await(pendingReceipt{m.From, m.Seq, what, due, m.Part == agora.Whole})
			owes = true
		}
	}
	o.handed(0)
	if owes {
		o.acked() // of what was acknowledged before it was written once more
	}
}

// await remembers a receipt that is due when its message is known to have arrived.
func (o *receiptQueue) await(r pendingReceipt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.lost, r.isLost) {
		return
	}
	o.unacked = append(o.unacked, r)
	if over := len(o.unacked) - maxPendingReceipts; over > 0 {
		o.spill.first, o.spill.last = lower(o.spill.first, o.unacked[0].seq), o.unacked[over-1].seq
		o.unacked = o.unacked[over:]
	}
}

// acked tells senders that what they sent is known to have arrived.
func (o *receiptQueue) acked() {
	if o == nil {
		return
	}
	confirmed, _, _ := o.cursor.mailbox()
	o.mu.Lock()
	idle := o.enterConfirmed(confirmed)
	spill := o.spill
	if spill.last > confirmed {
		spill = span{}
	} else {
		o.spill = span{}
	}
	if spill.last > 0 {
		o.willRead(spill.first - 1)
	}
	o.mu.Unlock()
	if spill.last > 0 {
		o.readBehind(spill.first-1, spill.last)
	}
	for to, a := range idle {
		o.flush(to, a)
	}
}

// enterConfirmed enters the receipts of what is known to have arrived up to a position into their senders' accounts,
// and returns those to be flushed. mu is held all the while: what is in no account is in unacked.
func (o *receiptQueue) enterConfirmed(confirmed uint64) (idle map[agora.AgentID]*senderReceipts) {
	for len(o.unacked) > 0 && o.unacked[0].seq <= confirmed {
		d := o.unacked[0]
		o.unacked = o.unacked[1:]
		for _, tier := range []agora.Receipts{agora.Delivered, agora.Acked} {
			if d.tiers&tier == 0 {
				continue
			}
			if a, first := o.enter(d.from, d.what, tier, d.seq); first {
				put(&idle, d.from, a)
			}
		}
	}
	return idle
}

// enqueue enters a receipt into its sender's account, and sends it unless one is under way.
// seq is where in the mailbox the message stands.
func (o *receiptQueue) enqueue(to agora.AgentID, what subject, tier agora.Receipts, seq uint64) {
	o.mu.Lock()
	a, first := o.enter(to, what, tier, seq)
	o.mu.Unlock()
	if first {
		o.flush(to, a)
	}
}

// enter enters a receipt into its sender's account. first reports that nothing of it is under way: the caller flushes
// it. mu is held.
func (o *receiptQueue) enter(to agora.AgentID, what subject, tier agora.Receipts, seq uint64) (a *senderReceipts, first bool) {
	if o.toTell == nil {
		o.toTell = map[agora.AgentID]*senderReceipts{}
	}
	a = o.toTell[to]
	if a == nil {
		a = &senderReceipts{n: map[tiered]uint64{}, at: map[tiered]uint32{}}
		o.toTell[to] = a
	}
	a.add(what, tier, seq)
	first = !a.busy
	a.busy = true
	return a, first
}

// add adds a receipt. One by number or index stands for all before it.
func (a *senderReceipts) add(what subject, tier agora.Receipts, seq uint64) {
	a.low = lower(a.low, seq)
	switch {
	case tier == agora.Undelivered:
		a.not = append(a.not, what)
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

// flush sends what an account holds, and again what has gathered when that is stored, or was refused for the moment.
func (o *receiptQueue) flush(to agora.AgentID, a *senderReceipts) {
	o.mu.Lock()
	due := a.drain()
	if len(due) == 0 {
		a.busy = false
		delete(o.toTell, to)
		defer o.markMoved() // what was held back for this is not any more
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
				o.node.background(func() { o.flushAgain(to, a, refused.Load()) })
			}
		}
		m := r.message()
		m.From, m.To = o.claim.Agent, o.peer(to)
		if r.tier == agora.Undelivered {
			o.node.background(func() { answered(o.post(m, r.what.at)) })
			continue
		}
		if err := o.out.sender().Send(o.node.ctx, m, relay.Options{Asker: relay.AskerFunc(func(t relay.Sent) { answered(t.Err) })}); err != nil {
			answered(err)
		} else {
			o.slot.MarkActive()
		}
	}
}

// flushAgain continues with an account; after a moment where receipts were refused, unless the session is over: then
// who gets it next tells what it finds in the log.
func (o *receiptQueue) flushAgain(to agora.AgentID, a *senderReceipts, refused bool) {
	if refused && (o.life.ended() || !pause.For(o.node.ctx, time.Second)) {
		o.mu.Lock()
		defer o.mu.Unlock()
		a.busy = false
		return
	}
	o.flush(to, a)
}

// busy reports whether a receipt is under way, or looked for in the log.
func (o *receiptQueue) busy() bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.toTell {
		if a.busy {
			return true
		}
	}
	return o.readers > 0
}

// forNow reports whether what was refused may be taken in a moment.
func forNow(err error) bool {
	e := agora.AsError(err)
	return e != nil && (e.Code == agora.Unavailable || e.Code == agora.RateLimited)
}

// receipt is what is told of one message, or of all up to it.
type receipt struct {
	what subject
	tier agora.Receipts
}

// drain empties the account; but what was not delivered comes first, alone: a receipt of what is behind it would speak
// of it, too.
func (a *senderReceipts) drain() (due []receipt) {
	if len(a.not) > 0 {
		for _, what := range a.not {
			due = append(due, receipt{what, agora.Undelivered})
		}
		a.not, a.sent = nil, a.low
		return due
	}
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
