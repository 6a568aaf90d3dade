// Package turns lets work in a few pieces at a time, so that what continues already need not wait behind all of it.
package turns

import (
	"cmp"
	"runtime"
	"sync"
	"time"
)

// Turns is for work that thousands may ask for at once, as when an edge has died and all its agents return: each costs
// milliseconds of the machine, and what continues already would wait behind all who were let in. So few are at work at
// a time, and the next one begins when one has ended: then the queue for a processor is short, however many wait, and
// no processor idles meanwhile. All kinds of such work share their Turns, and edges of one process theirs, as they
// share its machine. The zero value is ready.
type Turns struct {
	AtOnce int // how many are at work at a time: where most of it waits for others, more than there are processors; 2 for each, and 4 at least, if 0

	begin  sync.Once
	places chan struct{}
}

// longest is for how long one who is at work counts: longer than any work lasts that only a processor is missing for.
// Anyone who waits for a lease to run out must not hold up the others.
const longest = 20 * time.Millisecond

// Take returns when the next piece of work may begin: at once while little is asked for; who came first goes first. The
// caller calls end, once, when the work is done. Any goroutine may call both.
func (t *Turns) Take() (end func()) { return t.TakeFor(longest) }

// TakeFor is Take for work that counts for so long at most: where it waits for somebody out there, who may be far away
// or say nothing.
func (t *Turns) TakeFor(longest time.Duration) (end func()) {
	t.begin.Do(func() { t.places = make(chan struct{}, cmp.Or(t.AtOnce, max(4, 2*runtime.GOMAXPROCS(0)))) })
	t.places <- struct{}{}
	late := time.AfterFunc(longest, t.leave)
	return func() {
		if late.Stop() {
			t.leave()
		}
	}
}

func (t *Turns) leave() { <-t.places }
