package aip

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// Calls that are for another one are refused, wherever they come from, and whichever way they say so.
func TestANodeAnswersItsOwnCallsAlone(t *testing.T) {
	t.Parallel()
	bob := startAgent(t, config(nil, "bob"), echo)
	box := startToolbox(t, config(nil, "box"), map[string]func(context.Context, string) (any, error){"t": func(context.Context, string) (any, error) { return "ok", nil }})
	ctx := await.Context(t)
	agent, tools := wire.NewAgentServiceClient(raw(t, bob.Address())), wire.NewToolServiceClient(raw(t, box.Address()))
	for _, c := range []struct {
		about, meant, receiver string
		own                    bool
	}{
		{"another's id in the message", "", "mall/x", false},
		{"another's id in the metadata", "mall/x", "", false},
		{"another's in the metadata, its own in the message", "mall/x", "own", false},
		{"its own in the metadata, another's in the message", "own", "mall/x", false},
		{"another case", "", "OWN", false},
		{"its own in both", "own", "own", true},
		{"its own", "", "own", true},
		{"nobody's", "", "", true},
	} {
		named := func(id, own string) string {
			return strings.NewReplacer("own", own, "OWN", strings.ToUpper(own)).Replace(id)
		}
		code := codes.NotFound
		if c.own {
			code = codes.OK
		}
		to := func(own string) context.Context {
			if c.meant == "" {
				return ctx
			}
			return wire.Meaning(ctx, named(c.meant, own))
		}
		s, err := agent.CallAgent(to("bob"))
		_, err = speak(s, err, quest(StartQuest, named(c.receiver, "bob")), quest(StopQuest, named(c.receiver, "bob")))
		isStatus(t, "an agent, "+c.about, err, code, "")
		_, err = tools.CallTool(to("box"), &ToolRequest{SenderId: "alice", ReceiverId: named(c.receiver, "box"), SessionId: "s", ToolName: "t"})
		isStatus(t, "a toolbox, "+c.about, err, code, "")
	}
}

func TestAGatewaySaysThatItIsNoNode(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	ctx := await.Context(t)
	if err := wire.Identify(ctx, raw(t, g.Address()), "bob", nil); err == nil {
		t.Error("a gateway passes for a node")
	}
	bob := startAgent(t, config(g, "bob"), echo)
	if err := wire.Identify(ctx, raw(t, bob.Address()), "bob", nil); err != nil {
		t.Errorf("bob: %v", err)
	}
	for _, secret := range []string{"", "guessed"} {
		if err := wire.Identify(ctx, raw(t, bob.Address()), "bob", &secret); err == nil {
			t.Errorf("who registers bob with the secret %q passes for bob", secret)
		}
	}
	foreign := serveRaw(t, func(*grpc.Server) {})
	if err := wire.Identify(ctx, raw(t, foreign), "bob", new(string)); err != nil {
		t.Errorf("a server of another make: %v", err)
	}
}

// However an address is written, it is one member's.
func TestAMembersAddressIsItsOwnHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := startAgent(t, config(g, "bob"), echo)
	port := bob.Address()[strings.LastIndex(bob.Address(), ":")+1:]
	c, ctx := rawGateway(t, g), await.Context(t)
	for _, host := range []string{"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "[::1]", "[::ffff:127.0.0.1]", "127.0.0.2", "0.0.0.0", "[::]"} {
		address := host + ":" + port
		_, err := c.RegisterAgent(ctx, &AgentInfo{AgentId: "x", Address: address})
		isStatus(t, address, err, codes.AlreadyExists, "Address ["+address+"] already registered.")
	}
	_, err := c.RegisterAgent(ctx, &AgentInfo{AgentId: "x", Address: "unix:" + port})
	isStatus(t, "a path of a socket", err, codes.Unavailable, "")
}
