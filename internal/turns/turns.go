// Package turns lets work in at the rate that the machine can take besides what it does already.
package turns

import (
	"cmp"
	"sync"
	"time"
)

// Turns is for work that thousands may ask for at once, as when an edge has died and all its agents return: each costs
// milliseconds, and what goes on already would wait behind all of them. Whether too much was let in shows in how late
// a goroutine wakes that slept for a moment, as all others wait for a processor as it does. Then half as much is let
// in, but never less than five hundred a second; else a little more. Edges of one process share theirs, as they share its machine.
// The zero value is ready.
type Turns struct {
	mu    sync.Mutex // guards the fields below; held while somebody waits for the next turn, and those behind wait for it
	since time.Time  // when the turn began
	size  float64    // how many may begin in a turn
	left  float64    // how many still may in this one, the fraction that was left of the last one included

	now   func() time.Time // nil but in tests, like the next one
	sleep func(time.Duration)
}

const (
	length = 5 * time.Millisecond  // of a turn
	nap    = time.Millisecond      // the shortest look at how late it is
	late   = time.Millisecond      // what is too late
	rest   = 50 * time.Millisecond // where a turn lasts longer than this, little is asked for: nobody waits, and nothing is learned
	first  = 8                     // that may begin in the first turn
	most   = 64                    // in any
	more   = 1. / 8                // in a turn than in the one before: what was let in shows in how late it is only when it has got to work
	least  = 2 * time.Millisecond  // between two, on average, however late it is: a machine that is busy with other work never has time
)

// Take returns when the next piece of work may begin: at once while little is asked for, else within milliseconds for the first
// who waits. It does not know when work ends. Any goroutine may call it; who came first goes first, more or less.
func (t *Turns) Take() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now == nil {
		t.now, t.sleep = time.Now, time.Sleep
	}
	t.size = cmp.Or(t.size, first)
	for t.left < 1 {
		t.next()
	}
	t.left--
}

// next begins the next turn, when it is time.
func (t *Turns) next() {
	now := t.now()
	if took := now.Sub(t.since); took < rest {
		d := max(length-took, nap)
		t.sleep(d)
		woken := t.now()
		if woken.Sub(now)-d > late {
			t.size = max(t.size/2, float64(woken.Sub(t.since))/float64(least))
		} else {
			t.size = min(t.size+more, most)
		}
		now = woken
	}
	t.since, t.left = now, t.left+t.size
}
