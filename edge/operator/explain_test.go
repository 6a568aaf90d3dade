package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/presence"
)

// What is said of a message follows from how far its receiver is, and where it is.
func TestTheFateOfAMessageIsThatOfItsReceiver(t *testing.T) {
	t.Parallel()
	ends := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	live := func(change func(*edge.SessionStatus)) *reading {
		v := AgentView{State: "online", Edge: "edge-2", Conn: "ws-1", Confirmed: 10, Written: 20, Live: &edge.SessionStatus{Begun: true, Written: 20}}
		change(v.Live)
		return &reading{agent: v}
	}
	as := func(state string) *reading {
		return &reading{agent: AgentView{State: state, Confirmed: 10, Written: 20}}
	}
	grace := as("grace")
	grace.agent.GraceEnds = &ends
	left := as("away")
	left.agent.History = []presence.Event{
		{What: presence.Began, Edge: "edge-1", Conn: "ws-0", Epoch: 1, After: 1},
		{What: presence.Left, Edge: "edge-1", Conn: "ws-0", Epoch: 1, Written: 20, At: ends, Why: "goodbye"},
	}
	connecting := as("online")
	connecting.agent.Edge, connecting.agent.Unsettled = "edge-2", []string{"edge-1"}
	silent := as("online")
	silent.agent.Edge = "edge-2"
	cancelled := as("online")
	cancelled.sight.Cancelled = []presence.Stream{{Peer: "alice", Stream: "s", Seq: 5}}
	for name, c := range map[string]struct {
		r          *reading
		seq        uint64
		void       bool
		state, why string
	}{
		"acknowledged":         {r: live(func(*edge.SessionStatus) {}), seq: 10, state: "acknowledged", why: "to connection ws-1 at edge-2"},
		"it acks, and has not": {r: live(func(l *edge.SessionStatus) { l.Acks = true }), seq: 20, state: "written", why: "it acknowledges by itself"},
		"a pong is due":        {r: live(func(*edge.SessionStatus) {}), seq: 20, state: "written", why: "a pong"},
		"written, and gone":    {r: left, seq: 20, state: "written", why: "ws-0 at edge-1, and its receiver has not shown yet that it came: the connection is gone"},
		"away":                 {r: as("away"), seq: 21, state: "waiting", why: "has no session; it is delivered"},
		"left":                 {r: left, seq: 21, state: "waiting", why: "since 2026-01-02T03:04:05Z (connection ws-0 left edge-1: goodbye)"},
		"grace":                {r: grace, seq: 21, state: "waiting", why: "until 2026-01-02T03:04:05Z"},
		"grace, unknown":       {r: as("grace"), seq: 21, state: "waiting", why: "until ?"},
		"ending":               {r: as("ending"), seq: 21, state: "waiting", why: "just being ended"},
		"connecting":           {r: connecting, seq: 21, state: "waiting", why: "which waits until [edge-1] has handed over"},
		"edge does not answer": {r: silent, seq: 21, state: "waiting", why: "said to be at edge-2, which does not answer"},
		"not begun":            {r: live(func(l *edge.SessionStatus) { l.Begun = false }), seq: 21, state: "waiting", why: "about to begin, or to end"},
		"withheld":             {r: live(func(l *edge.SessionStatus) { l.Withheld = true }), seq: 21, state: "waiting", why: "edge-2 may not deliver"},
		"slow":                 {r: live(func(l *edge.SessionStatus) { l.Queued, l.HeardMS = 512, 1500 }), seq: 21, state: "waiting", why: "512 bytes before its socket, and gave a sign of life 1.5s ago"},
		"on its way":           {r: live(func(*edge.SessionStatus) {}), seq: 21, state: "waiting", why: "has not come so far"},
		"void":                 {r: live(func(*edge.SessionStatus) {}), seq: 10, void: true, state: "void", why: "every reader skips it"},
		"nobody":               {r: &reading{unknown: true}, seq: 10, state: "unknown", why: "not known any more"},
		"cancelled":            {r: cancelled, seq: 6, state: "cancelled", why: "has cancelled the stream"},
		"cancelled before":     {r: cancelled, seq: 5, state: "acknowledged", why: "is known to have it"},
	} {
		m := agora.Message{From: "alice", To: agora.ToAgent("t", "bob"), Stream: "s", Seq: c.seq}
		f := new(Service).fate(&broker.Stored{Message: m, Void: c.void}, c.r)
		if f.State != c.state || !strings.Contains(f.Why, c.why) {
			t.Errorf("%s: it is %s: %s; want %s: …%s…", name, f.State, f.Why, c.state, c.why)
		}
	}
}

func TestTheFateOfAnEventIsThatOfTheMembers(t *testing.T) {
	t.Parallel()
	for has, want := range map[uint64]string{9: "waiting", 10: "acknowledged"} {
		r := &reading{space: []MemberView{{Agent: "a", Seq: 12}, {Agent: "b", Seq: has}}}
		f := new(Service).fate(&broker.Stored{Message: agora.Message{Kind: agora.Event, To: agora.ToSpace("t", "room"), Seq: 10}}, r)
		if f.State != want || len(f.Readers) != 2 || !f.Readers[0].Has || f.Readers[1].Has != (has >= 10) {
			t.Errorf("with b at %d it is %s, had by %+v", has, f.State, f.Readers)
		}
	}
}
