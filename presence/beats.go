package presence

import (
	"slices"
	"sync"
	"sync/atomic"
)

// beats are the renewals of an edge's lease by their words. The server has the word of the last one: where that is none
// of those that it may have, it has lost what this edge has written since.
type beats struct {
	rollbacks atomic.Uint64

	mu    sync.Mutex // guards the field below
	words []string   // in the order in which they were sent: the last that was answered, the one before it, and those behind it, which may have arrived
}

// mostBeats is how many renewals are remembered. An edge that has sent so many without an answer has lost its lease.
const mostBeats = 64

// sent notes that a renewal is on its way.
func (b *beats) sent(word string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.words) == mostBeats {
		b.words = b.words[:0]
	}
	b.words = append(b.words, word)
}

// answered notes what the server has answered to a renewal: which one it had before, where the lease is this edge's.
func (b *beats) answered(r reply, word string) {
	if r.at(0).int() != 1 { // there was no lease, or another's: that is told otherwise
		return
	}
	before := r.at(1).str()
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.words, word)
	if at > 0 && !slices.Contains(b.words, before) {
		b.rollbacks.Add(1)
	}
	b.words = slices.Delete(b.words, 0, max(0, at-1))
}
