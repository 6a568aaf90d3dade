package broker

import "testing"

// Every state of an inbox meets every event: what it may have missed it reads, whatever comes live meanwhile, and a reader that was told that there is nothing is
// woken by the next thing, once.
func TestAnInboxReadsWhatItMayHaveMissed(t *testing.T) {
	for s := range inboxStates {
		for e := range inboxEvents {
			i := Inbox{state: s}
			wakes := i.hears(e)
			if i.state >= inboxStates || s.String() == "" {
				t.Fatalf("event %d makes %v of %v", e, i.state, s)
			}
			var holds bool
			switch next := i.state; {
			case s == inboxClosed || e == inboxCloses:
				holds = next == inboxClosed && !wakes
			case e == inboxMisses:
				holds = next.lags() && (next == inboxStages) == (s == inboxStages) && wakes == (s == inboxIdle)
			case e == inboxCatches:
				holds = !next.lags() && !wakes
			case s.lags(): // only the log's end makes it live
				holds = next.lags() && (next == inboxStages) == (s == inboxStages || e == inboxNears) && !wakes
			case e == inboxDrains:
				holds = next == inboxIdle && !wakes
			case e == inboxQueues:
				holds = next == inboxLive && wakes == (s == inboxIdle)
			default:
				holds = next == s && !wakes
			}
			if !holds {
				t.Errorf("event %d makes %v of %v, and wakes %t", e, i.state, s, wakes)
			}
		}
	}
}
