package edge_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// replies has an agent that has no session answer a request of anna's, at an edge; an empty one stands for the only one
// there is.
func replies(t *testing.T, c *agoratest.Cluster, k int, as agora.AgentID, request, body string) error {
	t.Helper()
	m := agora.Message{Kind: agora.Reply, To: agora.Address{Agent: "anna"}, Body: json.RawMessage(body), Meta: agora.Meta{Parent: request}}
	_, err := actor(t, c, k).Do(await.Context(t), as, asCommand(edge.Send, m))
	return err
}

func TestAReplyOfAnAgentWithoutASessionFindsItsCallFromAnyEdge(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	if _, err := actor(t, c, 0).Register(t.Context(), cardOf("bob"), time.Hour); err != nil {
		t.Fatal(err)
	}
	first, second := calls(t, c, 1, question("bob", "r1")), calls(t, c, 2, question("bob", "r2"))
	for _, request := range []string{"r2", "r1"} {
		if err := replies(t, c, 0, "bob", request, `"`+request+`"`); err != nil {
			t.Fatal(err)
		}
	}
	answers(t, first, `"r1"`)
	answers(t, second, `"r2"`)
	first.Close()
	second.Close()

	anna, _ := registered(t, c, 0, "anna")
	third := calls(t, c, 2, question("bob", "r3"))
	if err := replies(t, c, 1, "bob", "r0", `"of no call"`); err != nil {
		t.Fatal(err)
	}
	anna.Expect(`{"type":"reply","from":"bob","payload":"of no call"}`)
	await.True(t, "those that were answered are no more open", func() bool { return c.Node(1).Calls().Open.Load() == 0 })
	for { // what names nothing is of the only open one, once presence knows that the others are not
		if err := replies(t, c, 1, "bob", "", `"r3"`); err != nil {
			t.Fatal(err)
		}
		if _, ok := anna.Next(50 * time.Millisecond); !ok {
			break
		}
	}
	answers(t, third, `"r3"`)
}

// While presence can't say which calls are open, a reply waits: a mailbox is not for what somebody waits for.
func TestAReplyOfAnAgentWithoutASessionFindsItsCallThoughPresenceHasLostIt(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Lease: retold, Patience: await.Long}})
	if _, err := actor(t, c, 0).Register(t.Context(), cardOf("bob"), time.Hour); err != nil {
		t.Fatal(err)
	}
	anna, _ := registered(t, c, 0, "anna")
	a := calls(t, c, 1, question("bob", "r"))
	c.HoldPresence(1, true) // the caller's edge tells later than others what it knows
	forget(c)
	await.True(t, "bob is known again", func() bool {
		found, err := c.Node(2).Config().Presence.Addressees.Lookup(t.Context(), agora.DefaultTenant, "bob")
		return err == nil && found.State != presence.Unknown
	})
	said := make(chan error, 1)
	go func() { said <- replies(t, c, 2, "bob", "r", `"hi"`) }()
	anna.ExpectNone(during(time.Second))
	c.HoldPresence(1, false)
	if err := await.Recv(t, "the reply is stored", said); err != nil {
		t.Fatal(err)
	}
	answers(t, a, `"hi"`)
	if left := anna.Pending(); len(left) > 0 {
		t.Errorf("anna was sent %q", left)
	}
}
