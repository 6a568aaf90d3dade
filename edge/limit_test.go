package edge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
)

// speaker returns an actor under limits.
func speaker(l Limits) *Actor {
	n := new(Node)
	n.limits.set(l)
	return &Actor{node: n, tenant: n.tenants.of("t")}
}

func TestABucketWithoutARateLimitsNothing(t *testing.T) {
	a := speaker(Limits{})
	for range 1000 {
		if err := a.spend(1 << 20); err != nil {
			t.Fatal(err)
		}
		if d := a.reserve(1 << 20); d != 0 {
			t.Fatalf("waits %v", d)
		}
	}
}

func TestABucketHoldsItsBurstAndFillsAtItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := speaker(Limits{Rate: 10, Burst: 2})
		taken := func() (n int) {
			for ; a.spend(0) == nil; n++ {
			}
			return n
		}
		if n := taken(); n != 20 {
			t.Errorf("%d at once, want two seconds' worth: 20", n)
		}
		e := agora.AsError(a.spend(0))
		if e.Code != agora.RateLimited || e.RetryAfter <= 0 || e.RetryAfter > 100*time.Millisecond {
			t.Errorf("refused with %v after %v, want RATE_LIMITED and a tenth of a second at most", e, e.RetryAfter)
		}
		time.Sleep(e.RetryAfter)
		if err := a.spend(0); err != nil {
			t.Errorf("after the time told: %v", err)
		}
		time.Sleep(time.Second)
		if n := taken(); n != 10 {
			t.Errorf("%d after a second, want 10", n)
		}
		time.Sleep(time.Hour)
		if n := taken(); n != 20 {
			t.Errorf("%d after an hour, want no more than 20", n)
		}
	})
}

func TestPartsOfAStreamWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := speaker(Limits{Rate: 10, Burst: 1})
		s := &Session{actor: a}
		begin := time.Now()
		for range 30 {
			if err := s.spend(context.Background(), &agora.Message{Part: agora.Chunk}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took < 1900*time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("30 chunks at 10 a second, 10 at once, took %v, want 2s", took)
		}
	})
}

func TestAFrameAsLargeAsMayBePassesAnyRateOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := speaker(Limits{Bytes: 100, Frame: 1 << 20, TenantBytes: 100})
		if err := a.spend(1 << 20); err != nil {
			t.Error(err)
		}
		if err := a.spend(1); agora.AsError(err) == nil {
			t.Error("what comes after it passes, too")
		}
	})
}

func TestATenantsAgentsShareItsRateAndNobodyElsesDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(Node)
		n.limits.set(Limits{TenantRate: 10, TenantBytes: 1000, Frame: 10})
		one, two := &Actor{node: n, tenant: n.tenants.of("a")}, &Actor{node: n, tenant: n.tenants.of("a")}
		other := &Actor{node: n, tenant: n.tenants.of("b")}
		for range 5 {
			if err := one.spend(1); err != nil {
				t.Fatal(err)
			}
			if err := two.spend(1); err != nil {
				t.Fatal(err)
			}
		}
		if e := agora.AsError(two.spend(1)); e == nil || e.Code != agora.RateLimited || e.RetryAfter == 0 {
			t.Errorf("the eleventh message: %v, want RATE_LIMITED", e)
		}
		if err := other.spend(1); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		if got := n.Tenants()["a"].Limited.Load(); got != 1 {
			t.Errorf("%d are counted as limited, want 1", got)
		}
	})
}

func TestLimitsChangeForThoseWhoAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(Node)
		n.limits.set(Limits{Frame: 100, Rate: 1, TenantRate: 0.001})
		n.gate = newGate(&n.limits)
		a := &Actor{node: n, tenant: n.tenants.of("a")}
		if err := a.spend(0); err != nil {
			t.Fatal(err)
		}
		if err := a.spend(0); err == nil {
			t.Fatal("more than one at once")
		}
		n.SetLimits(Limits{Frame: 200, TenantRate: 1000})
		for range 100 {
			if err := a.spend(0); err != nil {
				t.Fatal(err)
			}
		}
		if f := n.Limits().Frame; f != 100 {
			t.Errorf("a frame may have %d bytes, want 100 still: doors were told", f)
		}
	})
}

func TestManyTenantsAreCountedTogether(t *testing.T) {
	var n Node
	for k := range CountedTenants + 50 {
		n.tenants.of(string(rune('a' + k))).Messages.Add(1)
	}
	all := n.Tenants()
	if len(all) != CountedTenants+1 || all[OtherTenants].Messages.Load() != 50 {
		t.Errorf("%d entries, of which the others have %d messages, want %d and 50", len(all), all[OtherTenants].Messages.Load(), CountedTenants+1)
	}
}

// An edge that is told nothing about it waits for presence to count what is said by requests: without that each edge would count by itself.
func TestPresenceHasTimeToCount(t *testing.T) {
	if got := (Config{}).withDefaults().Answer; got != 3*time.Second {
		t.Errorf("presence has %v to answer by default, want 3s", got)
	}
}
