package aip_test

import (
	"context"
	"strings"
	"testing"

	sdk "github.com/agora-relay/agora/client/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// answering starts an agent of the Go client that answers each text by itself, in capitals.
func answering(t *testing.T, id string, gateways ...string) *sdk.Agent {
	t.Helper()
	a, err := sdk.NewAgent(sdk.Config{ID: id, Gateways: gateways, RegisterTimeout: await.Long})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("close %s: %v", id, err)
		}
	})
	a.Handle(func(_ context.Context, s *sdk.Session) error {
		for m := range s.Messages() {
			if err := s.Reply(sdk.Text(strings.ToUpper(sdk.TextOf(m.GetContent())))); err != nil {
				return err
			}
		}
		return s.Finish(sdk.Text("done"))
	})
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	if err := a.Register(await.Context(t)); err != nil {
		t.Fatalf("register %s: %v", id, err)
	}
	return a
}

// asked returns what an agent answers to a text.
func asked(t *testing.T, from *sdk.Agent, to, say string) (said string) {
	t.Helper()
	for m, err := range from.Ask(await.Context(t), to, sdk.Text(say)) {
		if err != nil {
			t.Fatalf("%s asks %s: %v", from.ID(), to, err)
		}
		said += sdk.TextOf(m.GetContent()) + " "
	}
	return strings.Join(strings.Fields(said), " ") // what is said to the end is empty
}

func TestAgentsOfTheGoClientMeetAtEdges(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	answering(t, "one", s.addr(0))
	two := answering(t, "two", s.addr(1))
	if got := asked(t, two, "one", "hi"); got != "HI done" {
		t.Errorf("one says %q", got)
	}
	s.StopEdge(1)
	await.True(t, "two is with the other edge", func() bool { return strings.Join(s.ids(0, ""), " ") == "one two" })
}

func TestAGatewayOfTheGoClientAndAClusterAreLinked(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	g := gatewayOfTheClient(t)
	here, there := answering(t, "here", s.addr(0)), answering(t, "there", g.Address())
	if err := g.ConnectToGateway(await.Context(t), s.addr(1)); err != nil {
		t.Fatal(err)
	}
	s.links(0, g.Address())
	for k := range 2 {
		s.lists(k, "here", "there")
	}
	await.True(t, "the gateway lists both", func() bool { return len(g.Nodes()) == 2 })
	if got := asked(t, here, "there", "hi"); got != "HI done" {
		t.Errorf("there says %q", got)
	}
	if got := asked(t, there, "here", "hi"); got != "HI done" {
		t.Errorf("here says %q", got)
	}
}

// gatewayOfTheClient starts a gateway in this process, as the Go client has it.
func gatewayOfTheClient(t *testing.T) *sdk.Gateway {
	t.Helper()
	g, err := sdk.NewGateway(sdk.GatewayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	return g
}
