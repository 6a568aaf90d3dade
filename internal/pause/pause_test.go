package pause

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestForLastsAsLongAsItSaysOrUntilItsContextEnds(t *testing.T) {
	for about, c := range map[string]struct{ d, end, lasts time.Duration }{
		"to its end":              {time.Minute, time.Hour, time.Minute},
		"its context ends before": {time.Hour, time.Minute, time.Minute},
		"no time at all":          {0, time.Hour, 0},
		"less than none":          {-time.Minute, time.Hour, 0},
		"its context has ended":   {-time.Minute, 0, 0},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.end)
				defer cancel()
				begin := time.Now()
				whole := For(ctx, c.d)
				if lasted := time.Since(begin); whole != (c.d < c.end && c.end > 0) || lasted != c.lasts {
					t.Errorf("For(%v) = %v after %v, want it to last %v", c.d, whole, lasted, c.lasts)
				}
			})
		})
	}
}

func TestAReminderIsDueEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reminder
		var due []time.Duration
		for begin := time.Now(); time.Since(begin) < 25*time.Second; time.Sleep(time.Second) {
			if r.Due() {
				due = append(due, time.Since(begin))
			}
		}
		if want := []time.Duration{RemindEvery, 2 * RemindEvery}; !slices.Equal(due, want) {
			t.Errorf("due after %v, want %v", due, want)
		}
	})
}
