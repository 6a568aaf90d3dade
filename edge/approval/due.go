package approval

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// How late at the soonest and at the latest an edge has an approval expire: mostly one of them does.
const (
	lateFirst = 20 * time.Millisecond
	lateLast  = time.Second
)

// deadlines are when this edge has approvals expire that are pending. Guarded by replica.mu, but for sooner.
type deadlines struct {
	heap   dueHeap
	sooner chan struct{} // holds one token when something is due sooner than was known
}

// add has n expire.
func (d *deadlines) add(n *entry) {
	n.wakes = n.Expires.Add(lateFirst + rand.N(lateLast))
	heap.Push(&d.heap, n)
	if n.index != 0 {
		return
	}
	select {
	case d.sooner <- struct{}{}:
	default:
	}
}

// remove has n expire no more.
func (d *deadlines) remove(n *entry) {
	if n.index >= 0 {
		heap.Remove(&d.heap, n.index)
	}
}

// next returns when the next one is due; false where none is pending.
func (d *deadlines) next() (time.Time, bool) {
	if len(d.heap) == 0 {
		return time.Time{}, false
	}
	return d.heap[0].wakes, true
}

// due returns one that is due at a time, which is due again a while after it: by then it is decided, or is to be tried
// again. nil where none is due.
func (d *deadlines) due(now time.Time) *entry {
	if at, ok := d.next(); !ok || at.After(now) {
		return nil
	}
	n := d.heap[0]
	n.wakes = now.Add(retryAfter + rand.N(retryAfter))
	heap.Fix(&d.heap, 0)
	return n
}

// dueHeap is what is pending, the next to expire first.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].wakes.Before(h[j].wakes) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for package heap.
func (h *dueHeap) Push(x any) {
	n := x.(*entry)
	n.index = len(*h)
	*h = append(*h, n)
}

// Pop is for package heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	n.index = -1
	return n
}
