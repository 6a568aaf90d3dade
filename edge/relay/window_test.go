package relay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWindowHoldsSendersBackUntilThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := window{size: 10}
		take(t, &w, 6)
		began := time.Now()
		time.AfterFunc(time.Minute, func() { w.give(6) }) // a minute of fake time
		take(t, &w, 5)
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("waited %v, want a minute", waited)
		}
	})
}

func TestWindowLetsOneMessagePassThatIsLargerThanItself(t *testing.T) {
	w := window{size: 10}
	take(t, &w, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.take(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("take beside it = %v, want %v", err, context.Canceled)
	}
	w.give(1000)
	take(t, &w, 1)
}

func TestWindowWakesEveryoneWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := window{size: 2}
		take(t, &w, 2)
		taken := make(chan error, 2)
		for range 2 {
			go func() { taken <- w.take(t.Context(), 1) }()
		}
		synctest.Wait()
		w.give(2)
		for range 2 {
			if err := <-taken; err != nil {
				t.Errorf("take = %v, want nil", err)
			}
		}
	})
}

func take(t *testing.T, w *window, n int) {
	t.Helper()
	if err := w.take(t.Context(), n); err != nil {
		t.Fatalf("take(%d) = %v, want nil", n, err)
	}
}
