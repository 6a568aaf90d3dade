package edge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"net/netip"
)

// limited returns a node that has nothing but limits.
func limited(l admission.Limits) *Node {
	limits := admission.NewLiveLimits(l)
	return &Node{limits: limiters{LiveLimits: limits, Entrance: Entrance{Connections: admission.NewConnLimiter(limits)}, rates: admission.NewRateLimiter(limits, nil, 0)}}
}

// speaker returns an actor under limits.
func speaker(l admission.Limits) *Actor {
	n := limited(l)
	return &Actor{node: n, authority: authority{quota: n.limits.rates.Quota("t", "")}}
}

func TestPartsOfAStreamWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := speaker(admission.Limits{Rate: 10, Burst: 1})
		out := outgoing{binding: &binding{actor: a}}
		begin := time.Now()
		for range 30 {
			if err := out.spend(context.Background(), &agora.Message{Part: agora.Chunk}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took < 1900*time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("30 chunks at 10 a second, 10 at once, took %v, want 2s", took)
		}
	})
}

func TestLimitsChangeForThoseWhoAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := limited(admission.Limits{Frame: 100, Rate: 1, TenantRate: 0.001})
		a := &Actor{node: n, authority: authority{quota: n.limits.rates.Quota("a", "")}}
		if err := a.quota.Spend(0); err != nil {
			t.Fatal(err)
		}
		if err := a.quota.Spend(0); err == nil {
			t.Fatal("more than one at once")
		}
		n.SetLimits(admission.Limits{Frame: 200, TenantRate: 1000})
		for range 100 {
			if err := a.quota.Spend(0); err != nil {
				t.Fatal(err)
			}
		}
		if f := n.Limits().Frame; f != 100 {
			t.Errorf("a frame may have %d bytes, want 100 still: doors were told", f)
		}
	})
}

// An edge that is told nothing about it waits for presence to count what is said by requests: without that each edge
// would count by itself.
func TestPresenceHasTimeToCount(t *testing.T) {
	if got := (Config{}).withDefaults().Answer; got != 3*time.Second {
		t.Errorf("presence has %v to answer by default, want 3s", got)
	}
}

func TestAPrincipalWithoutANameIsCountedNowhere(t *testing.T) {
	conns := limited(admission.Limits{PerPrincipal: 1}).limits.Connections
	for range 3 {
		permit, err := conns.Acquire(netip.MustParseAddr("192.0.2.1"))
		if err != nil {
			t.Fatal(err)
		}
		a := new(Actor)
		a.principal.Store(&Principal{Tenant: "a"})
		if err := a.countConnection(permit, nil); err != nil {
			t.Errorf("nobody in particular: %v", err)
		}
	}
}
