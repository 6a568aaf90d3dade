package edge

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/spaces"
)

// A pong that is waited for is for Pong alone, or nobody would learn what it confirms.
func TestAPongThatConfirmsSomethingIsNotIdle(t *testing.T) {
	var s Session
	s.cursor.pings.number = 3
	if !s.IdlePong(3) || s.keepalive.heard.Load() == 0 {
		t.Error("a pong that nobody waits for is no sign of life")
	}
	if s.IdlePong(3 | probeMark) {
		t.Error("the answer to a probe was taken for an idle pong")
	}
	if s.cursor.pings.awaited = 3; s.IdlePong(3) {
		t.Error("the pong that confirms was taken for an idle one")
	}
}

// One ping is under way at a time, and its own pong alone ends that.
func TestAPongReturnsItsOwnPing(t *testing.T) {
	var p pings
	if p.returns(0) {
		t.Error("a pong returns a ping that was never sent")
	}
	first := p.send(7, true)
	if p.returns(first+1) || !p.pending() || p.seq != 7 {
		t.Errorf("behind a pong of another ping there is %+v, want one under way for 7", p)
	}
	if !p.returns(first) || p.pending() || p.returns(first) {
		t.Errorf("behind its pong there is %+v, want none under way", p)
	}
	if next := p.send(8, false); next == first || p.pending() || p.returns(next) {
		t.Error("a ping that confirms nothing has an earlier one's number, or is returned")
	}
}

// What was read while the edge might not deliver is given later: but not of a space that was joined again or left
// meanwhile.
func TestWhatWasWithheldOfAPlaceThatIsOverIsNotGiven(t *testing.T) {
	event := func(space string, seq uint64) *spaces.Event {
		return &spaces.Event{Message: agora.Message{Kind: agora.Event, To: agora.ToSpace("t", space), Seq: seq}}
	}
	same, old, now := new(subscription), new(subscription), new(subscription)
	c := cursor{subscriptions: map[string]*subscription{"same": same, "joined again": now}}
	given, _ := c.markHanded([]Delivery{
		{Event: event("same", 7), sub: same}, {Event: event("joined again", 8), sub: old}, {Event: event("left", 9), sub: new(subscription)},
		{Message: &agora.Message{Seq: 5}},
	})
	if len(given) != 2 || given[0].sub != same || given[1].Message == nil {
		t.Errorf("given is %+v, want what is of the place that stands, and the message", given)
	}
	if same.handed != 7 || c.handed != 5 || now.handed != 0 || old.handed != 0 {
		t.Errorf("given are %d, %d, %d and %d, want 7, 5 and nothing", same.handed, c.handed, now.handed, old.handed)
	}
}

// A pong proves what was written before its ping to the same socket: an earlier one may have been given more that never
// arrived.
func TestNothingThatAnEarlierSocketWasGivenIsProvedByTheNext(t *testing.T) {
	for name, by := range map[string]Proof{"a pong": ByPong, "what is written": ByWrite} {
		var at cursor
		at.proof.set(by)
		at.begin(5, 9)
		if data, confirms, _ := at.preparePing(); confirms || at.pong(data) || at.acked != 5 {
			t.Errorf("%s: before anything was written %d has arrived, want 5", name, at.acked)
		}
		if _, _, handed := at.mailbox(); handed != 9 {
			t.Errorf("%s: up to %d may be acknowledged, want 9", name, handed)
		}
		at.markWritten([]Delivery{{Message: &agora.Message{Seq: 7}}}, 1000)
		data, _, _ := at.preparePing()
		if at.pong(data); at.acked != 7 {
			t.Errorf("%s: up to %d has arrived, want 7", name, at.acked)
		}
	}
}
