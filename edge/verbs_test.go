package edge

import (
	"context"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

func TestMain(m *testing.M) {
	presence.LogClient(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

func TestKeyTellsTheSameMessageFromAnother(t *testing.T) {
	same := Key("id", []byte("a"), []byte("bc"))
	if again := Key("id", []byte("a"), []byte("bc")); again != same {
		t.Errorf("said again: %q, want %q", again, same)
	}
	for name, other := range map[string]string{
		"another id":       Key("di", []byte("a"), []byte("bc")),
		"another body":     Key("id", []byte("a"), []byte("bd")),
		"other boundaries": Key("id", []byte("ab"), []byte("c")),
		"one part less":    Key("id", []byte("a")),
		"no id, so no key": Key("", []byte("a"), []byte("bc")),
	} {
		if other == same {
			t.Errorf("%s: the same key %q", name, other)
		}
	}
	if id := (&agora.Message{ID: same}).ClientID(); id != "id" {
		t.Errorf("its client's id is %q, want id", id)
	}
}

func TestAnEventWithoutAnIDIsKnownByItsNumber(t *testing.T) {
	data := []byte("{}")
	same := EventKey("", 7, data)
	if same == "" || EventKey("", 7, data) != same || (&agora.Message{ID: same}).ClientID() != "" {
		t.Errorf("key of number 7: %q, want one that holds no id of the client's", same)
	}
	for name, other := range map[string]string{
		"another number": EventKey("", 8, data),
		"another body":   EventKey("", 7, []byte("{ }")),
		"an id":          EventKey("7", 7, data),
	} {
		if other == same {
			t.Errorf("%s: the same key %q", name, other)
		}
	}
	if got, want := EventKey("id", 7, data), Key("id", data); got != want {
		t.Errorf("with an id: %q, want %q", got, want)
	}
	if key := EventKey("", 0, data); key != "" {
		t.Errorf("with neither: %q, want none", key)
	}
}

func TestPrincipalMayBeWhatItsPatternsSay(t *testing.T) {
	p := Principal{Agents: []string{"alice", "team-*"}}
	for id, want := range map[agora.AgentID]bool{"alice": true, "alice2": false, "team-7": true, "team": false, "bob": false} {
		if got := p.May(id); got != want {
			t.Errorf("May(%q) = %v, want %v", id, got, want)
		}
	}
	if !(Principal{Any: true}).May("anyone") {
		t.Error("any: may not be anyone")
	}
}

func TestPeerNamesOfAgentsAndSpacesAreApart(t *testing.T) {
	if got, want := peerAddress("t", "general"), agora.ToAgent("t", "general"); got != want {
		t.Errorf("agent: %v, want %v", got, want)
	}
	if got, want := peerAddress("t", spaceMark+"general"), agora.ToSpace("t", "general"); got != want {
		t.Errorf("space: %v, want %v", got, want)
	}
}

func TestReceiptsOfALaneAreGatheredIntoTheLast(t *testing.T) {
	var box receiptBox
	var c noticed
	to := agora.ToAgent("t", "b")
	for n := range uint64(5) {
		box.add(Notice{Kind: NoticeReceipt, To: to, N: n + 1}, &c)
	}
	box.add(Notice{Kind: NoticeReceipt, To: to, Stream: "s", Index: 3}, &c)
	box.flush(&c)
	box.flush(&c)
	if c.wakes != 1 {
		t.Errorf("woken %d times, want once", c.wakes)
	}
	if len(c.notices) != 2 {
		t.Fatalf("told %v, want one of the lane and one of the stream", c.notices)
	}
	for _, n := range c.notices {
		if n.Stream == "" && n.N != 5 || n.Stream == "s" && n.Index != 3 {
			t.Errorf("told %+v, want the last", n)
		}
	}
}

// noticed is a Conn that keeps what it is told.
type noticed struct {
	wakes   int
	notices []Notice
}

func (c *noticed) Wake()           { c.wakes++ }
func (c *noticed) Notify(n Notice) { c.notices = append(c.notices, n) }
func (c *noticed) Close(Reason)    {}

// A part that its sender sends again at the next edge is no hole: ended here,
// its stream would end for the successor, too.
func TestOnlyAPartThatNobodySendsAgainLeavesAHole(t *testing.T) {
	here := t.Context()
	gone, cut := context.WithCancel(here)
	cut()
	taken := agora.AsError(presence.ErrDeposed)
	for name, c := range map[string]struct {
		socket context.Context
		n      uint64
		err    error
		want   bool
	}{
		"all is well":                           {here, 1, nil, false},
		"refused":                               {here, 1, agora.Errorf(agora.InvalidRequest, "no"), true},
		"refused for the moment":                {here, 1, agora.Errorf(agora.Unavailable, "not now"), true},
		"numbered, and a question was given up": {here, 1, agora.AsError(context.Canceled), true},
		"numbered, and the socket is gone":      {gone, 1, agora.AsError(context.Canceled), false},
		"numbered, and the claim was taken":     {here, 1, taken, false},
		"without number, and the socket's gone": {gone, 0, agora.AsError(context.Canceled), true},
		"without number, and the claim's taken": {here, 0, taken, true},
	} {
		if got := new(lifecycle).leavesHole(c.socket, c.n, c.err); got != c.want {
			t.Errorf("%s: leavesHole = %t, want %t", name, got, c.want)
		}
	}
	s := new(lifecycle)
	s.leavesHole(here, 1, taken)
	if s.leavesHole(here, 2, agora.Errorf(agora.Unavailable, "number 1 was refused and has not come again")) {
		t.Error("what follows a part that came too late leaves a hole")
	}
}
