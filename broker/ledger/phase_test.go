package ledger

import "testing"

// Every phase of a stream meets every event: a start makes another stream, an end is an end, and a receiver is owed an abort until it has an end.
func TestAStreamThatOwesAnAbortOwesItUntilItsEnd(t *testing.T) {
	for p := range phases {
		for e := range events {
			next := nextPhase[p][e]
			if next >= phases || p.String() == "" {
				t.Fatalf("event %d makes %v of %v", e, next, p)
			}
			var holds bool
			switch e {
			case startStored:
				holds = next == running
			case endStored:
				holds = next == over
			case abortStored: // where no start is stored for sure, the abort ends nothing: the start may come again
				start := p == unstarted || p == doubted
				holds = start && next == unstarted || !start && next == aborted
			case partStored: // only what was forgotten is open again
				holds = next == p || p == unknown && next == running
			case startRefused: // it says nothing of what has begun
				holds = next == p || p == unknown && next == unstarted
			case startDoubted: // what is open has its start
				holds = p.isOpen() && next == p || !p.isOpen() && next == doubted
			case partLost: // its receiver has a hole
				holds = p == running && next == broken || p != running && next == p
			}
			if p.owesAbort() && e != startStored && e != endStored && e != abortStored && !next.owesAbort() {
				holds = false
			}
			if !holds {
				t.Errorf("event %d makes %v of %v", e, next, p)
			}
			if p.isOpen() && p.ended() || p != unknown && !p.isOpen() && !p.ended() {
				t.Errorf("%v is open: %t, ended: %t; want one of the two", p, p.isOpen(), p.ended())
			}
		}
	}
}
