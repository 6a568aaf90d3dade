package relay

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// A stream whose start was refused begins again before presence was told that it is over: the Tick must not take out
// what is open by now, as its session's next holder ends what presence knows of.
func TestAStreamThatBeginsAgainIsNotTakenOutOfPresence(t *testing.T) {
	r, c, to := &Relay{}, presence.Claim{Session: "s1"}, agora.ToAgent("t", "bob")
	r.streamClosed(c, to, "again")
	r.streamClosed(c, to, "over")
	if out := r.streamOpens(&c, to, "again"); out != nil {
		t.Error("a stream that no Tick is taking out is waited for")
	}
	batches, left := r.takeClosed()
	if len(batches) != 1 || len(batches[0].streams) != 1 || batches[0].streams[0] != "over" {
		t.Errorf("taken out is %+v, want the stream that is over alone", batches)
	}
	if out := r.streamOpens(&c, to, "over"); out != left {
		t.Error("a stream that a Tick is taking out begins again and does not wait")
	}
	if out := r.streamOpens(&presence.Claim{Session: "s2"}, to, "over"); out != nil {
		t.Error("another session's stream of that name waits")
	}
}
