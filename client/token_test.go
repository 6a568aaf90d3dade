package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// registerUntil answers a registration with credentials that end.
func (p *peerConn) registerUntil(end time.Time) {
	p.t.Helper()
	f := p.expect("agent.register")
	p.send(wire.Frame{
		Type: "agent.registered", ID: f.ID, Agent: &wire.Agent{ID: f.Agent.ID, ConnectionID: "ws-1"},
		ResumeToken: "token-1", HasLastSeq: true, HeartbeatInterval: 30, Expires: uint64(end.Unix()),
	})
}

func TestCredentialsAreAskedForAtEveryConnectAndRenewedBeforeTheyEnd(t *testing.T) {
	p, asked := newPeer(t), atomic.Int64{}
	cfg := Config{URLs: []string{p.url}, Agent: "me", Backoff: Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond}}
	cfg.TokenSource = func(context.Context) (string, error) { return fmt.Sprint("token-", asked.Add(1)), nil }
	result := async(func() (*Client, error) { return Dial(testCtx(t), cfg) })
	conn := p.accept()
	if got := conn.header.Get("Authorization"); got != "Bearer token-1" {
		t.Errorf("connected with %q, want the first token", got)
	}
	end := time.Now().Add(6 * time.Second)
	conn.registerUntil(end)
	c := result(t)
	defer c.Close()
	f := conn.expect("agent.refresh")
	if f.Token != "token-2" || !time.Now().Before(end) {
		t.Errorf("renewed with %q at %v, want the second token before %v", f.Token, time.Now(), end)
	}
	conn.send(wire.Frame{Type: "agent.refreshed", ID: f.ID, Expires: uint64(end.Add(time.Hour).Unix())})
	conn.cut()
	again := p.accept()
	if got := again.header.Get("Authorization"); got != "Bearer token-3" {
		t.Errorf("connected again with %q, want the third token", got)
	}
	again.register(true)
}

func TestATokenThatIsRefusedOnTheWayBackIsTriedNoLongerThanPatience(t *testing.T) {
	p, token := newPeer(t), atomic.Pointer[string]{}
	set := func(s string) { token.Store(&s) }
	set("right")
	c, conn := dial(t, p, Config{Patience: 300 * time.Millisecond, TokenSource: func(context.Context) (string, error) { return *token.Load(), nil }})
	set("wrong")
	conn.cut()
	time.AfterFunc(100*time.Millisecond, func() { set("right again") })
	again := p.accept()
	again.register(true)
	set("wrong")
	again.cut()
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("the client goes on with a token that no edge takes")
	}
	if e, ok := errors.AsType[*agora.Error](c.Err()); !ok || e.Code != agora.Unauthorized {
		t.Errorf("ended with %v, want UNAUTHORIZED", c.Err())
	}
}

func TestAClientWhoseSourceHasNothingSaysSo(t *testing.T) {
	p, none := newPeer(t), errors.New("no file")
	_, err := Dial(testCtx(t), Config{URLs: []string{p.url}, Agent: "me", TokenSource: func(context.Context) (string, error) { return "", none }})
	if !errors.Is(err, none) {
		t.Errorf("Dial = %v, want %v", err, none)
	}
}
