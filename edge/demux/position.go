package demux

import (
	"container/heap"
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// position is how far the mailbox was dispatched, and up to where it is consumed. Its Demux's mu guards it.
type position struct {
	most    int64  // records of the mailbox: see Config
	at      uint64 // of the last message that was dispatched
	records int64  // that were dispatched: their distance is how far a queue is behind
	acked   uint64
	unread  byPosition // queues that hold the position back
}

// begin notes a message that is about to be dispatched.
func (p *position) begin(seq uint64) {
	if seq>>agora.SeqShift != p.at>>agora.SeqShift {
		p.records++
	}
}

// mark is where a queue holds the position back.
type mark struct {
	index  int    // in byPosition; -1 for none
	low    uint64 // position of the first part that is not consumed, where index is set
	lowest int64  // its record
	since  int64  // ticks since when it is too far behind; 0 while it is not
}

// byPosition is a heap of the queues that have something unconsumed, the lowest position first.
type byPosition []*queue

func (h byPosition) Len() int           { return len(h) }
func (h byPosition) Less(i, j int) bool { return h[i].low < h[j].low }
func (h byPosition) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is heap.Interface's.
func (h *byPosition) Push(v any) {
	q := v.(*queue)
	q.index = len(*h)
	*h = append(*h, q)
}

// Pop is heap.Interface's.
func (h *byPosition) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	q.index = -1
	return q
}

// unconsumed returns the position of the first part that the reader has not consumed, and its record.
func (q *queue) unconsumed() (seq uint64, record int64, some bool) {
	switch {
	case q.pinned > 0:
		return q.pinned, q.record, true
	case q.hand.Seq > 0:
		return q.hand.Seq, q.hand.record, true
	case q.parts.len() > 0:
		return q.parts.first().Seq, q.parts.first().record, true
	case q.lagging:
		return q.through + 1, q.record, true
	}
	return 0, 0, false
}

// weigh notes what the first unconsumed part of a queue is now. mu is held.
func (p *position) weigh(q *queue) {
	low, record, some := q.unconsumed()
	switch {
	case !some && q.index >= 0:
		heap.Remove(&p.unread, q.index)
	case some && q.index < 0:
		q.low, q.lowest = low, record
		heap.Push(&p.unread, q)
	case some && q.low != low:
		q.low, q.lowest = low, record
		heap.Fix(&p.unread, q.index)
	default:
		return
	}
	if q.since != 0 && (q.index < 0 || !p.far(q)) {
		q.since = 0
	}
}

// far reports whether more than half of the mailbox has come since the first unconsumed part of a queue.
func (p *position) far(q *queue) bool { return p.records-q.lowest > p.most/2 }

// first returns the queue that holds the position back; nil for none.
func (p *position) first() *queue {
	if len(p.unread) == 0 {
		return nil
	}
	return p.unread[0]
}

// consumed returns the position up to which everything is consumed, where that is news; else 0.
func (p *position) consumed() uint64 {
	upTo := p.at
	if q := p.first(); q != nil {
		upTo = min(upTo, q.low-1)
	}
	if upTo <= p.acked {
		return 0
	}
	p.acked = upTo
	return upTo
}

// toAcknowledge returns the position up to which everything is consumed, where that is news; else 0. It looks after who
// holds it back. mu is held.
func (d *Demux) toAcknowledge() uint64 {
	if d.closed { // what is dropped from now on is for the next holder of the session
		return 0
	}
	d.lookAfter()
	return d.position.consumed()
}

// lookAfter gives up exchanges that are far behind for too long: what they hold back fills the mailbox for all who
// write to it. The backlog is no one's alone: where it is what is behind, the mailbox is full, and its writers are
// slowed.
func (d *Demux) lookAfter() {
	for q := d.position.first(); q != nil && q.of != nil && d.position.far(q); q = d.position.first() {
		now := agora.Ticks()
		if q.pinned > 0 { // it is given up
			return
		}
		if q.since == 0 {
			q.since = now
		}
		if left := d.cfg.Patience - time.Duration(now-q.since); left > 0 {
			d.lookAgain(left)
			return
		}
		d.stats.GivenUp.Add(1)
		q.of.fail(errTooSlow)
	}
}

// lookAgain has the position looked after in a while.
func (d *Demux) lookAgain(in time.Duration) {
	switch {
	case d.closed:
	case d.overdue == nil:
		d.overdue = time.AfterFunc(in, d.acknowledge)
	default:
		d.overdue.Reset(in)
	}
}

// acknowledge tells the session up to where everything is consumed.
func (d *Demux) acknowledge() {
	d.mu.Lock()
	upTo := d.toAcknowledge()
	d.mu.Unlock()
	d.tell(upTo)
}

func (d *Demux) tell(upTo uint64) {
	if upTo == 0 {
		return
	}
	if err := d.session.Load().Do(context.Background(), &edge.Command{Verb: edge.Ack, Seq: upTo}); err != nil {
		d.cfg.Log.Debug("position was not acknowledged", "seq", upTo, "err", err)
	}
}

// Slow returns the peers with a stream here that lags, and is more than an eighth of the mailbox behind. It does not
// block.
func (d *Demux) Slow() (peers []agora.AgentID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lagging == 0 {
		return nil
	}
	for k, x := range d.names.streams {
		if x.lagging && d.position.records-x.lowest > d.cfg.Records/8 {
			peers = append(peers, k.peer)
		}
	}
	return peers
}
