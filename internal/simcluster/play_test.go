package simcluster

import (
	"runtime"
	"runtime/debug"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// Result is what came of a history.
type Result struct {
	Plan     Plan
	Failures []string // nothing where all was as it must be
	Story    []string // what happened
	Seen     Tally
	Took     time.Duration // of simulated time
}

// Tally is how much happened.
type Tally struct {
	Sessions, Said, Receipted, Arrived, Again, Aborts, Gaps int
	Faults                                                  map[string]int
}

// epoch is when histories begin: later than any process that plays them, which counts its ticks from its start.
var epoch = time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)

// Play plays one history. No two may be played at once by one process.
func Play(t *testing.T, p Plan) (r Result) {
	// What libraries keep for another use belongs to the bubble in which it was made: two collections throw it away.
	runtime.GC()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a history leaves little, and takes the same course where none comes between
	cryptotest.SetGlobalRandom(t, p.Seed)
	synctest.Test(t, func(t *testing.T) {
		setOneSeed(p.Seed)
		<-time.After(time.Until(epoch))
		began := time.Now()
		w := newWorld(t, &p)
		w.play()
		w.end()
		<-time.After(2 * time.Second) // a client of presence that was cut off looks for its end once a second
		r = Result{Plan: p, Failures: w.failures, Story: w.notes, Seen: w.seen, Took: time.Since(began)}
	})
	return r
}
