package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
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
	synctest.Test(t, func(t *testing.T) {
		l, asked := newPipes(), atomic.Int64{}
		p := peerAt(t, l)
		cfg := Config{URLs: []string{p.url}, Agent: "me", Dial: l.dial, Backoff: Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond}}
		cfg.TokenSource = func(context.Context) (string, error) { return fmt.Sprint("token-", asked.Add(1)), nil }
		result := async(func() (*Client, error) { return Dial(await.Context(t), cfg) })
		conn := p.accept()
		if got := conn.header.Get("Authorization"); got != "Bearer token-1" {
			t.Errorf("connected with %q, want the first token", got)
		}
		end := time.Now().Add(time.Minute)
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
	})
}

// A clock's difference has at most 292 years, and three times a third of that is not to be less than nothing.
func TestATokenWhoseEndIsFarAwayIsNotRenewed(t *testing.T) {
	for _, ends := range []uint64{4102444800, 5000000000, 253402300799, 1 << 62, 1<<64 - 1} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			renewals := 0
			c := credentials{source: func(context.Context) (string, error) { return "far", nil }}
			c.renew(ctx, ending(&wire.Frame{Expires: ends}), func(context.Context, *wire.Frame) (*wire.Frame, error) {
				renewals++
				return &wire.Frame{Expires: ends}, nil
			})
			if renewals != 0 {
				t.Errorf("one that ends at %d is renewed %d times in an hour", ends, renewals)
			}
		})
	}
}

func TestATokenThatIsRefusedOnTheWayBackIsTriedNoLongerThanPatience(t *testing.T) {
	wrong, asked := atomic.Bool{}, atomic.Int64{}
	source := func(context.Context) (string, error) {
		if wrong.Load() {
			asked.Add(1)
			return "wrong", nil
		}
		return "right", nil
	}
	p := newPeer(t)
	_, conn := dial(t, p, Config{TokenSource: source})
	wrong.Store(true)
	conn.cut()
	await.True(t, "the client has tried again and again", func() bool { return asked.Load() > 2 })
	wrong.Store(false)
	p.accept().register(true)
	p = newPeer(t)
	c, conn := dial(t, p, Config{Patience: 100 * time.Millisecond, TokenSource: source})
	wrong.Store(true)
	conn.cut()
	await.Recv(t, "the client gives up a token that no edge takes", c.Done())
	if e, ok := errors.AsType[*agora.Error](c.Err()); !ok || e.Code != agora.Unauthorized {
		t.Errorf("ended with %v, want UNAUTHORIZED", c.Err())
	}
}

func TestAClientWhoseSourceHasNothingSaysSo(t *testing.T) {
	p, none := newPeer(t), errors.New("no file")
	_, err := Dial(await.Context(t), Config{URLs: []string{p.url}, Agent: "me", TokenSource: func(context.Context) (string, error) { return "", none }})
	if !errors.Is(err, none) {
		t.Errorf("Dial = %v, want %v", err, none)
	}
}
