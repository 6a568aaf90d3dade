package relay

import "testing"

// Every state of a box meets every event: nothing but a stored answer, and that nobody waits, is the end of it, and
// then nothing opens it again.
func TestABoxIsOverOnceAndForAll(t *testing.T) {
	for s := range boxStates {
		for e := range boxEvents {
			next := boxNext[s][e]
			if next >= boxStates || s.String() == "" {
				t.Fatalf("event %d makes %v of %v", e, next, s)
			}
			var holds bool
			switch {
			case s == boxOver:
				holds = next == boxOver
			case e == answerStored, e == answerGivenUp:
				holds = next == boxOver
			case e == answerSaid:
				holds = next == boxAnswered
			case e == answerEndSaid: // what was not begun has no end: it may be answered still
				holds = next == boxEnding && s.answered() || next.open() && s.open()
			case e == answerRefused: // any answer may come now
				holds = next.open()
			case e == answerDoubted: // an answer that is on its way tells by itself whether somebody waits
				holds = next == boxDoubted && s.open() || next == s && s.answered()
			case e == answerWaitedFor:
				holds = next == boxAwaits && s == boxDoubted || next == s && s != boxDoubted
			}
			if !holds {
				t.Errorf("event %d makes %v of %v", e, next, s)
			}
		}
	}
}

// A refused start may come again under its stream's name, unless its end was said as well: then it is any answer.
func TestARefusedAnswerRemembersItsStreamWhileThatGoesOn(t *testing.T) {
	for _, c := range []struct {
		events []boxEvent
		want   boxState
	}{
		{[]boxEvent{answerSaid, answerRefused}, boxRefused},
		{[]boxEvent{answerSaid, answerRefused, answerEndSaid}, boxAwaits},
		{[]boxEvent{answerSaid, answerEndSaid, answerRefused}, boxAwaits},
		{[]boxEvent{answerSaid, answerRefused, answerSaid, answerEndSaid}, boxEnding},
		{[]boxEvent{answerDoubted, answerWaitedFor, answerSaid, answerStored, answerRefused}, boxOver},
	} {
		s := boxAwaits
		for _, e := range c.events {
			s = boxNext[s][e]
		}
		if s != c.want {
			t.Errorf("events %v end in %v, want %v", c.events, s, c.want)
		}
	}
}
