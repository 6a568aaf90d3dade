package pump_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora/internal/pump"
)

func TestWorkThatFailsIsDoneAgainAfterPausesThatDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		var pauses []time.Duration
		failures := 4
		p := pump.Pump{All: &all, LastDelay: 300 * time.Millisecond, Failed: func(_ error, again time.Duration) { pauses = append(pauses, again) }}
		p.Work = func() error {
			if failures--; failures >= 0 {
				return errors.New("not now")
			}
			return nil
		}
		begun := time.Now()
		p.Wake()
		time.Sleep(time.Hour)
		p.Close()
		all.Wait()
		if want := []time.Duration{100e6, 200e6, 300e6, 300e6}; !slices.Equal(pauses, want) || failures != -1 {
			t.Errorf("pauses %v and %d tries left after %v, want %v and -1", pauses, failures, time.Since(begun), want)
		}
	})
}

func TestAPumpThatIsWokenAtWorkWorksOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		times, goOn := 0, make(chan struct{})
		p := pump.Pump{All: &all, LastDelay: time.Second}
		p.Work = func() error { times++; <-goOn; return nil }
		p.Wake()
		synctest.Wait()
		p.Wake()
		p.Wake()
		close(goOn)
		all.Wait()
		p.Close()
		p.Wake()
		all.Wait()
		if times != 2 {
			t.Errorf("it has worked %d times, want 2", times)
		}
	})
}
