package sidecar

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/libp2p/go-libp2p/core/peer"
)

func TestASlotThatBecomesFreeIsForWhoeverHasTheFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShares(16)
		for range 14 {
			if !s.try("many") {
				t.Fatal("a slot is not given though there are free ones")
			}
		}
		if s.try("many") {
			t.Error("a caller has all slots")
		}
		if one, two := s.try("few"), s.try("few"); !one || !two || s.try("none") {
			t.Error("the last two slots are not given to others, or are more than two")
		}
		ctx, giveUp := context.WithCancel(t.Context())
		got := make(chan peer.ID, 8)
		waits := func(who peer.ID) {
			go func() {
				if s.take(ctx, who) == nil {
					got <- who
				} else {
					got <- ""
				}
			}()
			synctest.Wait()
		}
		waits("many")
		waits("few")
		waits("none")
		waits("many")
		for _, want := range []peer.ID{"none", "few", "many"} {
			s.give("many")
			if who := <-got; who != want {
				t.Errorf("a slot is for %q, want %q", who, want)
			}
		}
		giveUp()
		if who := <-got; who != "" || len(s.waiting) != 0 {
			t.Errorf("%q has a slot that it does not wait for any more, and %d wait", who, len(s.waiting))
		}
		for who, n := range map[peer.ID]int{"many": 12, "few": 3, "none": 1} {
			if s.taken[who] != n {
				t.Errorf("%q has %d slots, want %d", who, s.taken[who], n)
			}
			for range n {
				s.give(who)
			}
		}
		if s.free != 16 || len(s.taken) != 0 {
			t.Errorf("in the end %d slots are free, and of %d callers is something known; want 16 and 0", s.free, len(s.taken))
		}
	})
}
