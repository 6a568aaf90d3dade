package admission

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
)

// speaker returns the quota of a connection under limits.
func speaker(l Limits) *Quota {
	q := limiter(l).Quota("t", "")
	return &q
}

func limiter(l Limits) *RateLimiter {
	return NewRateLimiter(NewLiveLimits(l), nil, 0)
}

func TestABucketWithoutARateLimitsNothing(t *testing.T) {
	a := speaker(Limits{})
	for range 1000 {
		if err := a.Spend(1 << 20); err != nil {
			t.Fatal(err)
		}
		if d := a.Reserve(1 << 20); d != 0 {
			t.Fatalf("waits %v", d)
		}
	}
}

func TestABucketHoldsItsBurstAndFillsAtItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := speaker(Limits{Rate: 10, Burst: 2})
		taken := func() (n int) {
			for ; a.Spend(0) == nil; n++ {
			}
			return n
		}
		if n := taken(); n != 20 {
			t.Errorf("%d at once, want two seconds' worth: 20", n)
		}
		e := agora.AsError(a.Spend(0))
		if e.Code != agora.RateLimited || e.RetryAfter <= 0 || e.RetryAfter > 100*time.Millisecond {
			t.Errorf("refused with %v after %v, want RATE_LIMITED and a tenth of a second at most", e, e.RetryAfter)
		}
		time.Sleep(e.RetryAfter)
		if err := a.Spend(0); err != nil {
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

func TestAFrameAsLargeAsMayBePassesAnyRateOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := speaker(Limits{Bytes: 100, Frame: 1 << 20, TenantBytes: 100})
		if err := a.Spend(1 << 20); err != nil {
			t.Error(err)
		}
		if err := a.Spend(1); agora.AsError(err) == nil {
			t.Error("what comes after it passes, too")
		}
	})
}

func TestATenantsAgentsShareItsRateAndNobodyElsesDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := limiter(Limits{TenantRate: 10, TenantBytes: 1000, Frame: 10})
		one, two := n.Quota("a", ""), n.Quota("a", "")
		other := n.Quota("b", "")
		for range 5 {
			if err := one.Spend(1); err != nil {
				t.Fatal(err)
			}
			if err := two.Spend(1); err != nil {
				t.Fatal(err)
			}
		}
		if e := agora.AsError(two.Spend(1)); e == nil || e.Code != agora.RateLimited || e.RetryAfter == 0 {
			t.Errorf("the eleventh message: %v, want RATE_LIMITED", e)
		}
		if err := other.Spend(1); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		if got := n.Tenants()["a"].Limited[OfTenant].Load(); got != 1 {
			t.Errorf("%d are counted as limited, want 1", got)
		}
	})
}

// TestAllAgentsOfAPrincipalShareItsRate holds that a principal of many agents says no more than it may, another one of
// its tenant as much as ever, and that sixteen times the rate of an agent is its rate where nothing else is set.
func TestAllAgentsOfAPrincipalShareItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limits := range []Limits{{PrincipalRate: 32}, {Rate: 2}, {Rate: 2, PrincipalRate: 10, PrincipalBytes: 1 << 30}, {Bytes: 8, Frame: 1}, {PrincipalBytes: 64, Frame: 1}} {
			n := limiter(limits)
			want := 32
			switch {
			case limits.PrincipalRate == 10:
				want = 10
			case limits.PrincipalBytes == 64:
				want = 64
			case limits.Bytes == 8:
				want = 16 * 8
			}
			said := func(tenant, name string) (all int) {
				for range 100 {
					q := n.Quota(tenant, name) // of another agent of its
					for q.Spend(min(1, int(limits.PrincipalBytes+limits.Bytes))) == nil && all < 1000 {
						all++
					}
				}
				return all
			}
			if all := said("t", "mall"); all != want {
				t.Errorf("%+v: a hundred agents of a principal say %d at once, want %d", limits, all, want)
			}
			for _, other := range [][2]string{{"t", "alice"}, {"acme", "mall"}} {
				if all := said(other[0], other[1]); all != want {
					t.Errorf("%+v: %v says %d, want %d", limits, other, all, want)
				}
			}
			q := n.Quota("t", "mall")
			if limits.Rate+limits.Bytes == 0 && q.Reserve(1) == 0 {
				t.Errorf("%+v: a part of a stream does not wait", limits)
			}
		}
	})
}

func TestManyTenantsAreCountedTogether(t *testing.T) {
	n := new(RateLimiter)
	for k := range CountedTenants + 50 {
		n.tenants.of(string(rune('a' + k))).Messages.Add(1)
	}
	all := n.Tenants()
	if len(all) != CountedTenants+1 || all[OtherTenants].Messages.Load() != 50 {
		t.Errorf("%d entries, of which the others have %d messages, want %d and 50", len(all), all[OtherTenants].Messages.Load(), CountedTenants+1)
	}
}
