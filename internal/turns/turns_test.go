package turns

import (
	"sync"
	"testing"
	"time"
)

// lateBy returns turns whose sleeps end too late by what late says, and their clock.
func lateBy(late *time.Duration) (*Turns, *time.Time) {
	now := time.Unix(1, 0)
	return &Turns{
		now:   func() time.Time { return now },
		sleep: func(d time.Duration) { now = now.Add(d + *late) },
	}, &now
}

func TestFewerBeginWhileTheMachineHasNoTimeForThem(t *testing.T) {
	var behind time.Duration
	turns, now := lateBy(&behind)
	begun := func(d time.Duration) (n int) {
		for end := now.Add(d); now.Before(end); n++ {
			turns.Take()
		}
		return n
	}
	begun(3 * time.Second)
	quick := begun(time.Second)
	if all := int(most * time.Second / length); quick < all/2 || quick > all+most {
		t.Errorf("%d began in a second that was never late, want up to %d", quick, all)
	}
	behind = 10 * time.Millisecond
	begun(time.Second)
	if slow := begun(time.Second); slow > 550 || slow < 450 {
		t.Errorf("%d began in a second in which every sleep ended late, want about 500", slow)
	}
	behind = 0
	begun(time.Second)
	if again := begun(time.Second); again < quick/2 {
		t.Errorf("%d begin in a second when it is over, want more than half of %d", again, quick)
	}
}

func TestNobodyWaitsWhoComesAlone(t *testing.T) {
	behind := time.Second
	turns, now := lateBy(&behind)
	for range 100 {
		*now = now.Add(rest)
		before := *now
		turns.Take()
		if waited := now.Sub(before); waited > 0 {
			t.Fatalf("it waited for %v", waited)
		}
	}
}

func TestManyTakeTheirTurnsAtOnce(t *testing.T) {
	var turns Turns
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				turns.Take()
			}
		})
	}
	wg.Wait()
}
