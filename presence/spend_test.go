package presence_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/presence"
)

func TestWhatAnAgentMaySayIsTakenFromOneStore(t *testing.T) {
	eachServer(t, func(t *testing.T, sv *server) {
		one, two := sv.store(presence.Config{}), sv.store(presence.Config{})
		slow := func(need, want int64) presence.Spending {
			return presence.Spending{Rate: 1e-3, Room: 10, Need: need, Want: want}
		}
		free := presence.Spending{Need: 1, Want: 5}
		spends := func(s *presence.Store, messages, bytes presence.Spending, m, b int64, waits bool) {
			t.Helper()
			gotM, gotB, wait, err := s.Quotas.Spend(t.Context(), tenant, "al", messages, bytes)
			if err != nil || gotM != m || gotB != b || wait > 0 != waits || wait > time.Hour*3 {
				t.Errorf("took %d and %d, waits %v, %v; want %d and %d, waits %v", gotM, gotB, wait, err, m, b, waits)
			}
		}
		spends(one, free, free, 5, 5, false) // leaves nothing behind
		spends(one, slow(1, 4), slow(2, 2), 4, 2, false)
		spends(two, slow(1, 4), slow(2, 2), 4, 2, false)
		spends(one, slow(1, 1), slow(7, 7), 0, 0, true) // takes neither
		spends(two, slow(1, 4), slow(6, 6), 2, 6, false)
		spends(one, slow(1, 1), slow(0, 0), 0, 0, true)
		spends(one, slow(0, 0), slow(0, 0), 0, 0, false)
		other := presence.Spending{Rate: 1e-3, Room: 11, Need: 1, Want: 1}
		spends(one, other, other, 1, 1, false) // at another rate everything is new
		_, _, wait, err := one.Quotas.Spend(t.Context(), tenant, "al", presence.Spending{Rate: 1e-3, Room: 11, Need: 11, Want: 11}, other)
		if err != nil || wait < 15*time.Minute || wait > 1000*time.Second {
			t.Errorf("waits %v, %v, want the thousand seconds in which one comes", wait, err)
		}
		m, b, wait, err := two.Quotas.Spend(t.Context(), tenant, "bo", slow(1, 10), slow(1, 1))
		if err != nil || m != 10 || b != 1 || wait != 0 {
			t.Errorf("another agent took %d and %d, waits %v, %v", m, b, wait, err)
		}
	})
}
