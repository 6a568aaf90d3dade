package pump_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora/internal/pump"
)

func TestWhatFailsIsTriedAgainAfterAPauseThatDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &pump.Retry{Longest: 300 * time.Millisecond}
		done := make(chan time.Time, 9)
		var pauses []time.Duration
		for k := range 5 {
			if k == 3 {
				r.Over()
			}
			begin := time.Now()
			said := r.Again(func() { done <- time.Now() })
			if lasted := (<-done).Sub(begin); lasted != said {
				t.Errorf("pause %d: %v after it said %v", k, lasted, said)
			}
			pauses = append(pauses, said/time.Millisecond)
		}
		if want := []time.Duration{100, 200, 300, 100, 200}; !slices.Equal(pauses, want) {
			t.Errorf("paused %v ms, want %v", pauses, want)
		}
		r.Again(func() { t.Error("it was called, though it was stopped") })
		r.Stop()
		<-time.After(time.Hour) // of the bubble
		synctest.Wait()
	})
}

// Anyone who is woken by others while it fails must not come to have a timer for each of its failures: each would fail
// again, and have another.
func TestWhatHasFailedOftenIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &pump.Retry{Longest: time.Second}
		tries := 0
		for range 10 {
			r.Again(func() { tries++ })
		}
		<-time.After(time.Hour) // of the bubble
		synctest.Wait()
		if tries != 1 {
			t.Errorf("tried %d times, want once", tries)
		}
		var none *pump.Retry
		none.Over()
		none.Stop()
	})
}
