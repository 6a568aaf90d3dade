package presence_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora/internal/simnet"
	"github.com/agora-relay/agora/presence"
)

// TestInABubbleKeysExpireByItsTime holds that a server within the process knows no other time: a lease is there to its
// last millisecond, and no longer.
func TestInABubbleKeysExpireByItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inProcess(t).store(presence.Config{Lease: 10 * time.Second})
		h := presence.Holder{Edge: "edge 1", Incarnation: "a/b"}
		renewed(t, s, h)
		for _, step := range []struct {
			then  time.Duration
			alive bool
		}{{5 * time.Second, true}, {4999 * time.Millisecond, true}, {2 * time.Millisecond, false}, {24 * time.Hour, false}} {
			<-time.After(step.then)
			if alive := must(s.Leases.Alive(t.Context(), h))(t); alive != step.alive {
				t.Errorf("%v later it is alive: %v, want %v", step.then, alive, step.alive)
			}
		}
	})
}

// TestInABubbleQuestionsTimeOut holds that the one who asks a server that says nothing gives up by the bubble's time.
func TestInABubbleQuestionsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := inProcess(t)
		s := srv.store(presence.Config{})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ok(t, s.Ping(ctx))
		if took := time.Since(began); took != 0 {
			t.Errorf("an answer took %v of a time that stands still meanwhile", took)
		}
		srv.dial = func(context.Context) (net.Conn, error) { // to somebody who reads all and says nothing
			c, peer := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, peer) }()
			return simnet.Buffer(c), nil
		}
		silent := presence.New(presence.Config{Client: srv.client(), Lease: time.Hour, Grace: time.Hour, Known: time.Hour, EmptyGrace: time.Hour})
		defer silent.Close()
		began = time.Now()
		if err := silent.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) && !unavailable(err) {
			t.Errorf("ping = %v, want that it gives up", err)
		}
		if took := time.Since(began); took == 0 || took > time.Hour {
			t.Errorf("it gave up after %v, within an hour that it had", took)
		}
	})
}
