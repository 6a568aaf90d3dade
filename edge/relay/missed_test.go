package relay_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/presence"
)

// The word that nobody waits for an answer any more may be in a gap. The answer goes to the mailbox of who asked all
// the same: into its box nobody looks any more.
func TestAnAnswerGoesToTheMailboxThoughTheWordThatItsCallIsOverWasLost(t *testing.T) {
	b := newBench(t)
	s := b.relay.Sender(relay.SenderConfig{Claim: &b.claim}, nil)
	defer s.Close()
	h, bob := presence.Holder{Edge: "edge", Incarnation: "1"}, agora.ToAgent("t", "bob")
	asked := func(name string) presence.Call {
		t.Helper()
		c := presence.Call{Tenant: "t", Box: "box-" + name, From: "bob", To: "alice", Request: name}
		if _, _, err := b.store.Calls.Open(t.Context(), h, "w", c, time.Hour, time.Hour); err != nil {
			t.Fatal(err)
		}
		s.Heard(&agora.Message{Kind: agora.Request, From: "bob", ID: name, Meta: agora.Meta{Call: c.Box}}, false)
		return c
	}
	over := func(c presence.Call) {
		t.Helper()
		states, err := b.store.Calls.Leave(t.Context(), h, []presence.Leaving{{Call: c, Waiter: "w", End: true}}, time.Hour, time.Hour)
		if err != nil || states[0] != presence.CallOver {
			t.Fatalf("ended: %v, %v", states, err)
		}
	}
	answersInto := func(about, name string, want agora.Address) {
		t.Helper()
		m := agora.Message{Kind: agora.Reply, To: bob, Meta: agora.Meta{Parent: name}}
		if got, err := s.Route(t.Context(), &m); err != nil || got != want {
			t.Errorf("%s: the answer goes to %v, want %v", about, got, want)
		}
	}
	box := func(name string) agora.Address { return agora.ToBox("t", "box-"+name, "bob") }

	over(asked("heard"))
	answersInto("nothing is lost: the word comes before long", "heard", box("heard"))
	over(asked("unheard"))
	asked("open")
	s.Heard(&agora.Message{Kind: agora.Gap}, false)
	answersInto("the word may be lost, and is", "unheard", bob)
	answersInto("it may be lost, and was not said", "open", box("open"))
	over(asked("later"))
	answersInto("the call was asked after what is lost", "later", box("later"))

	over(asked("streamed"))
	s.Heard(&agora.Message{Kind: agora.Gap}, false)
	m := agora.Message{Kind: agora.Reply, Part: agora.Start, To: bob, Stream: "answer", Meta: agora.Meta{Parent: "streamed"}}
	if got, err := s.Route(t.Context(), &m); err != nil || got != bob {
		t.Errorf("a streamed answer goes to %v, want the mailbox", got)
	}

	asked("unknown")
	s.Heard(&agora.Message{Kind: agora.Gap}, false)
	b.store.Close()
	m = agora.Message{Kind: agora.Reply, To: bob, Meta: agora.Meta{Parent: "unknown"}}
	if got, err := s.Route(t.Context(), &m); err == nil || agora.AsError(err).Code != agora.Unavailable {
		t.Errorf("presence is away: the answer goes to %v, %v; want UNAVAILABLE", got, err)
	}
}
