package aip

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// subscribe has an agent be told of nodes, and returns what it is told, in words.
func subscribe(t *testing.T, a *Agent, ids ...string) (next func() string) {
	t.Helper()
	sub, err := a.Subscribe(await.Context(t), ids...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sub.Close() })
	if err := sub.Begun(); err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		for u, err := range sub.Updates() {
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(u.GetUpdateType(), " ", u.GetNodeId(), " ", peerDomain(u.GetPeer()), " ", u.GetPeer() != nil)
		}
		return "the end"
	}
}

func TestSubscribersAreToldOfWhatChanges(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "before"), echo)
	caller := newAgent(t, config(g, "alice"))
	all, bobs := subscribe(t, caller), subscribe(t, newAgent(t, config(g, "eve")), "bob")
	says := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := all(); got != w {
				t.Errorf("all: %q, want %q", got, w)
			}
		}
	}
	bob := startAgent(t, config(g, "bob"), echo)
	says("ADDED bob  true")
	box := startToolbox(t, config(g, "box"), nil)
	says("ADDED box  true")
	bob.cfg.Domain = "red"
	if err := bob.UpdateInfo(await.Context(t)); err != nil {
		t.Fatal(err)
	}
	says("UPDATED bob red true")
	if err := box.Deregister(await.Context(t)); err != nil {
		t.Fatal(err)
	}
	bob.Close()
	says("REMOVED box  false", "REMOVED bob  false")
	for _, want := range []string{"ADDED bob  true", "UPDATED bob red true", "REMOVED bob  false"} {
		if got := bobs(); got != want {
			t.Errorf("bob: %q, want %q", got, want)
		}
	}
}

func TestWhoUnsubscribesIsToldNoMore(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	caller, ctx := newAgent(t, config(g, "alice")), await.Context(t)
	all, two := subscribe(t, caller), subscribe(t, caller, "a", "b")
	if err := caller.Unsubscribe(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	startAgent(t, config(g, "a"), echo)
	startAgent(t, config(g, "b"), echo)
	for about, next := range map[string]func() string{"all": all, "two": two} {
		if got := next(); got != "ADDED b  true" {
			t.Errorf("%s: %q, want b alone", about, got)
		}
	}
	if err := caller.Unsubscribe(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if got := two(); got != "the end" {
		t.Errorf("a subscription to nothing says %q", got)
	}
	if err := caller.Unsubscribe(ctx); err != nil {
		t.Fatal(err)
	}
	if got := all(); got != "the end" {
		t.Errorf("a subscription that was ended says %q", got)
	}
	resp, err := rawGateway(t, g).Unsubscribe(ctx, &wire.UnsubscribeRequest{SubscriberId: "nobody"})
	if err != nil || resp.GetSuccess() {
		t.Errorf("who has no subscription is answered %v, %v", resp, err)
	}
}

func TestASubscriberThatDoesNotReadIsEnded(t *testing.T) {
	t.Parallel()
	d := newDirectory("g")
	w := d.watch("alice", nil, nil)
	l := &link{gateway: startGateway(t, GatewayConfig{}), address: "there:1"}
	for i := range maxPending + 1 {
		d.offer(l, false, agentPeer(&AgentInfo{AgentId: fmt.Sprint(i), Address: "x:1"}))
	}
	updates, over, err := d.take(w)
	if len(updates) != maxPending || !over {
		t.Errorf("%d updates, over: %v", len(updates), over)
	}
	isStatus(t, "the end", err, codes.ResourceExhausted, "")
}

func TestASubscriptionEndsWithItsClose(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	caller := newAgent(t, config(g, "alice"))
	sub, err := caller.Subscribe(await.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	sub.Close()
	sub.Close()
	for _, err := range sub.Updates() {
		isStatus(t, "a closed one", err, codes.Canceled, "")
	}
	sub, err = caller.Subscribe(await.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	caller.Close()
	for _, err := range sub.Updates() {
		if !errors.Is(err, ErrClosed) || errors.Is(err, io.EOF) {
			t.Errorf("that of a closed node ends with %v, want %v", err, ErrClosed)
		}
	}
	if _, err := caller.Subscribe(await.Context(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed node subscribes with %v, want %v", err, ErrClosed)
	}
}
