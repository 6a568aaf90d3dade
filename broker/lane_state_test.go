package broker

import "testing"

// Every state of a lane meets every event: only an answer of the log ends a doubt, one that lasts too long has those who wait refused, and nothing brings a lane back
// that is over.
func TestALaneInDoubtSendsNothingBeforeTheLogHasAnswered(t *testing.T) {
	for s := range laneStates {
		for e := range laneEvents {
			l := Lane{state: s}
			changes := l.hears(e)
			if l.state >= laneStates || s.String() == "" || changes != (l.state != s) {
				t.Fatalf("event %d makes %v of %v, and changes it: %t", e, l.state, s, changes)
			}
			var holds bool
			switch next := l.state; {
			case s == laneEnded || e == laneCloses:
				holds = next == laneEnded
			case s == laneDead || e == laneIsDeposed:
				holds = next == laneDead
			case e == laneLearns:
				holds = next == laneActive
			case e == laneDoubts:
				holds = next.asks() && next.refuses() == (s == laneSuspended)
			case s == laneActive: // it has asked nothing that it could give up
				holds = next == laneActive
			default:
				holds = next == laneSuspended
			}
			if !holds {
				t.Errorf("event %d makes %v of %v", e, l.state, s)
			}
		}
	}
}
