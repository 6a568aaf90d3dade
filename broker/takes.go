package broker

import (
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

const (
	takesNothingAfter = 5 * time.Second  // of refusals without a record that is stored
	takesNothingFor   = 30 * time.Second // since the last refusal: nobody has tried since, and it may be well again
)

// takes is whether a stream takes records, by what became of those that were sent last. A disk that is full and a leader that is gone
// show here alone: the connection to the log stands.
type takes struct {
	since atomic.Int64 // ticks at the first refusal since a record was stored; 0 for none
	last  atomic.Int64 // ticks at the last one
}

// refused notes that a record was not taken, or is not answered for longer than an election lasts.
func (t *takes) refused() {
	now := agora.Ticks()
	t.since.CompareAndSwap(0, now)
	t.last.Store(now)
}

// stored notes that a record was taken.
func (t *takes) stored() {
	if t.since.Load() != 0 {
		t.forget()
	}
}

// forget forgets what was refused, as another leader may have the stream: else an edge that refuses newcomers, of whom a record would come, waits for nothing.
func (t *takes) forget() { t.since.Store(0) }

// nothing reports whether the stream takes nothing now.
func (t *takes) nothing() bool {
	since, now := t.since.Load(), agora.Ticks()
	return since != 0 && time.Duration(now-since) >= takesNothingAfter && time.Duration(now-t.last.Load()) < takesNothingFor
}

// Stores returns UNAVAILABLE, with the stream's name, while nothing can be stored in a stream: for 5 s, all that this edge sent there was
// refused, or not answered for longer than an election lasts. It does not block, and knows nothing of streams to which nothing is sent.
func (b *Broker) Stores() error {
	for _, name := range b.streams.names() {
		if w := b.watchers[name]; w != nil && w.stores.nothing() {
			return agora.Errorf(agora.Unavailable, "nothing can be stored in %s: its servers have no leader, or no room", name)
		}
	}
	return nil
}
