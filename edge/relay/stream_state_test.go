package relay

import "testing"

// Every state of a stream meets every event: what is not open to the agent never is again, as a start makes another
// stream of it, and only one that is open is ended or awaited.
func TestAStreamThatIsNotOpenStaysSo(t *testing.T) {
	open := func(s streamState) bool { return s == streamRunning || s == streamAwaited || s == streamEnding }
	for s := range streamStates {
		for e := range streamEvents {
			next := streamNext[s][e]
			if next >= streamStates || s.String() == "" {
				t.Fatalf("event %d makes %v of %v", e, next, s)
			}
			var holds bool
			switch {
			case e == endUnsure: // presence has it until the log says what became of it
				holds = next == streamOwed
			case !open(s):
				holds = !open(next) && (next == s || s == streamBegins)
			case s == streamEnding: // its last part is on its way, whatever is said of others
				holds = next == streamEnding
			case e == endSaid:
				holds = next == streamEnding
			case e == startComesAgain:
				holds = next == streamAwaited
			default:
				holds = next == streamRunning
			}
			if !holds {
				t.Errorf("event %d makes %v of %v", e, next, s)
			}
		}
	}
}
