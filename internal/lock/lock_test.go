package lock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneHoldsItAtATime(t *testing.T) {
	t.Parallel()
	var m Mutex
	var all sync.WaitGroup
	n := 0
	for range 8 {
		all.Go(func() {
			for range 1000 {
				m.Lock()
				n++
				m.Unlock()
			}
		})
	}
	all.Wait()
	if n != 8000 {
		t.Errorf("%d of 8000 were counted", n)
	}
}

func TestWhoWaitsCanGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m Mutex
		m.Lock()
		if m.TryLock() {
			t.Error("two hold it")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.LockContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who gave up is told %v", err)
		}
		m.Unlock()
		if !m.TryLock() {
			t.Error("nobody holds it, and it can't be had")
		}
		m.Unlock()
	})
}

// A goroutine that waits for the mutex is one of those that wait: time passes meanwhile.
func TestTimePassesForWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m Mutex
		m.Lock()
		time.AfterFunc(time.Hour, m.Unlock)
		m.Lock()
		defer m.Unlock()
	})
}

func BenchmarkLock(b *testing.B) {
	var m Mutex
	n := 0
	for b.Loop() {
		m.Lock()
		n++
		m.Unlock()
	}
}
