package demux

import (
	"container/heap"
	"context"
	"time"

	"github.com/agora-relay/agora"
)

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
	case q.queued() > 0:
		return q.parts[q.head].Seq, q.parts[q.head].record, true
	case q.lagging:
		return q.through + 1, q.record, true
	}
	return 0, 0, false
}

// weigh takes note of what the first unconsumed part of a queue is now. mu is held.
func (d *Demux) weigh(q *queue) {
	low, record, some := q.unconsumed()
	switch {
	case !some && q.index >= 0:
		heap.Remove(&d.unread, q.index)
	case some && q.index < 0:
		q.low, q.lowest = low, record
		heap.Push(&d.unread, q)
	case some && q.low != low:
		q.low, q.lowest = low, record
		heap.Fix(&d.unread, q.index)
	default:
		return
	}
	if q.since != 0 && (q.index < 0 || !d.far(q)) {
		q.since = 0
	}
}

// far reports whether more than half of the mailbox has come since the first unconsumed part of a queue.
func (d *Demux) far(q *queue) bool { return d.records-q.lowest > d.cfg.Records/2 }

// toAcknowledge returns the position up to which everything is consumed, where that is news; else 0. It looks after who holds it back. mu is held.
func (d *Demux) toAcknowledge() uint64 {
	if d.closed { // what is dropped from now on is for the next holder of the session
		return 0
	}
	d.lookAfter()
	upTo := d.pos
	if len(d.unread) > 0 {
		upTo = min(upTo, d.unread[0].low-1)
	}
	if upTo <= d.acked {
		return 0
	}
	d.acked = upTo
	return upTo
}

// lookAfter gives up exchanges that are far behind for too long: what they hold back fills the mailbox for all who write to it. The
// backlog is no one's alone: where it is what is behind, the mailbox is full, and its writers are slowed.
func (d *Demux) lookAfter() {
	for len(d.unread) > 0 && d.far(d.unread[0]) && d.unread[0].of != nil {
		q, now := d.unread[0], agora.Ticks()
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
	if err := d.session.Load().Ack(context.Background(), "", upTo); err != nil {
		d.cfg.Log.Debug("position was not acknowledged", "seq", upTo, "err", err)
	}
}

// Slow returns the peers with a stream here that lags, and is more than an eighth of the mailbox behind. It does not block.
func (d *Demux) Slow() (peers []agora.AgentID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lagging == 0 {
		return nil
	}
	for k, x := range d.streams {
		if x.lagging && d.records-x.lowest > d.cfg.Records/8 {
			peers = append(peers, k.peer)
		}
	}
	return peers
}
