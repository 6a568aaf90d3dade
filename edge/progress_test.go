package edge

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/spaces"
)

// A pong that is waited for is for Pong alone, or nobody would learn what it confirms.
func TestAPongThatConfirmsSomethingIsNotIdle(t *testing.T) {
	var s Session
	s.ping = 3
	if !s.IdlePong(3) || s.heard.Load() == 0 {
		t.Error("a pong that nobody waits for is no sign of life")
	}
	if s.IdlePong(3 | probeMark) {
		t.Error("the answer to a probe was taken for an idle pong")
	}
	if s.asked = true; s.IdlePong(3) {
		t.Error("the pong that confirms was taken for an idle one")
	}
}

// What was read while the edge might not deliver is given later: but not of a space that was joined again or left meanwhile.
func TestWhatWasWithheldOfAPlaceThatIsOverIsNotGiven(t *testing.T) {
	event := func(space string, seq uint64) *spaces.Event {
		return &spaces.Event{Message: agora.Message{Kind: agora.Event, To: agora.ToSpace("t", space), Seq: seq}}
	}
	same, old, now := new(place), new(place), new(place)
	s := Session{places: map[string]*place{"same": same, "joined again": now}}
	s.pulled = []Delivery{
		{Event: event("same", 7), place: same}, {Event: event("joined again", 8), place: old}, {Event: event("left", 9), place: new(place)},
		{Message: &agora.Message{Seq: 5}},
	}
	s.handed()
	if len(s.pulled) != 2 || s.pulled[0].place != same || s.pulled[1].Message == nil {
		t.Errorf("given is %+v, want what is of the place that stands, and the message", s.pulled)
	}
	if same.given != 7 || s.given != 5 || now.given != 0 || old.given != 0 {
		t.Errorf("given are %d, %d, %d and %d, want 7, 5 and nothing", same.given, s.given, now.given, old.given)
	}
}
