package edge_test

import (
	"context"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// registry returns a Registry at edge 0 of a cluster that does by itself only what follows as callers leave. known says
// whether a caller is an agent.
func registry(t *testing.T, c *agoratest.Cluster, known func() (bool, error)) *call.Registry {
	t.Helper()
	cfg := c.Node(0).Config()
	r := call.New(call.Config{
		Broker: cfg.Broker, Presence: cfg.Presence, Holder: c.Node(0).Holder(), Wrote: func(agora.Address) {},
		Reach: func(context.Context, agora.Address) error { return nil }, Usage: admission.NewUsage(admission.NewLiveLimits(admission.Limits{Calls: 1, EdgeCalls: 1})), Delivers: func() error { return nil },
		Known: func(context.Context, string, agora.AgentID) (bool, error) { return known() },
	})
	t.Cleanup(r.Close)
	return r
}

// asks has anna ask bob, whose answer is to be read.
func asks(t *testing.T, r *call.Registry, id, name string) *call.Answer {
	t.Helper()
	q := question("bob", id)
	q.Name, q.Message.From, q.Message.To = name, "anna", agora.ToAgent(agora.DefaultTenant, "bob")
	a, err := r.Start(await.Context(t), q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// Other edges have ended a call, and have told who was asked; its caller learns that by presence or by the call's box.
// Anyone who has ended it may have died before it looked for the answer: one that comes nevertheless goes to the
// caller's mailbox, by the caller's own edge.
func TestAnAnswerToACallThatOthersHaveEndedGoesToItsCallersMailboxOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	anna, _ := registered(t, c, 1, "anna")
	bob, _ := registered(t, c, 1, "bob")
	r := registry(t, c, func() (bool, error) { return true, nil })
	for _, byBox := range []bool{false, true} {
		for id, name := range map[string]string{"r": "", "k": "key"} {
			if byBox {
				id, name = id+" by box", name+name
			}
			a := asks(t, r, id, name)
			bob.Expect(`{"type":"message","from":"anna"}`)
			if byBox {
				isSaidToBeOver(t, c, a)
			} else {
				isEndedByOthers(t, c, r, a)
			}
			fails(t, a, agora.StreamAborted)
			bob.Send(`{"type":"reply","to":"anna","id":"i","payload":{"request_id":` + agoratest.Quote(id) + `}}`)
			bob.Await(`{"type":"receipt","request_id":"i","status":"stored"}`)
			a.Close()
			anna.Expect(`{"type":"reply","from":"bob","redelivered":true,"payload":{"request_id":` + agoratest.Quote(id) + `}}`)
		}
	}
	anna.ExpectNone(during(500 * time.Millisecond))
	bob.ExpectNone(during(time.Millisecond)) // others have told it
}

// isEndedByOthers ends anna's call of bob in presence, as others do that take its edge for dead, and lets the edge come
// back.
func isEndedByOthers(t *testing.T, c *agoratest.Cluster, r *call.Registry, a *call.Answer) {
	t.Helper()
	store, h := c.Node(1).Config().Presence, c.Node(0).Holder()
	of := presence.Call{Tenant: agora.DefaultTenant, Box: a.Box(), From: "anna", To: "bob", Request: a.RequestID()}
	states, err := store.Calls.Leave(t.Context(), h, []presence.Leaving{{Call: of, Waiter: "*", End: true}}, time.Minute, time.Minute)
	if err != nil || states[0] != presence.CallOver {
		t.Fatalf("Leave = %v, %v; want %s", states, err, presence.CallOver)
	}
	if err := store.Calls.Drop(t.Context(), h, []presence.Call{of}); err != nil {
		t.Fatal(err)
	}
	if err := r.Hold(await.Context(t)); err != nil {
		t.Fatal(err)
	}
}

// isSaidToBeOver has the box of anna's call say that others have ended it.
func isSaidToBeOver(t *testing.T, c *agoratest.Cluster, a *call.Answer) {
	t.Helper()
	m := agora.AbortBody{Code: agora.StreamAborted}.Message()
	m.Kind, m.To = agora.Control, agora.ToBox(agora.DefaultTenant, a.Box(), "anna")
	if _, err := c.Broker(1).Publish(await.Context(t), "call-over/"+a.Box(), m); err != nil {
		t.Fatal(err)
	}
}
