// Package await is how tests wait: for a condition, never for a time, and so long that no busy machine fails a test
// whose condition comes true in the end. How fast something is, benchmarks and chaos tests judge.
package await

import (
	"context"
	"os"
	"testing"
	"time"
)

// Long is how long a test waits for what must come before it fails: two minutes, or what AGORA_TEST_PATIENCE says.
// Tests that are run to see them fail set it short.
var Long = long(os.Getenv("AGORA_TEST_PATIENCE"))

func long(set string) time.Duration {
	if d, err := time.ParseDuration(set); err == nil && d > 0 {
		return d
	}
	return 2 * time.Minute
}

// every is how often a condition is asked for.
const every = 5 * time.Millisecond

// True waits until a condition holds, and fails the test at once when it does not within [Long]. what says in words
// what was waited for.
func True(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Within(Long, holds) {
		t.Fatalf("waited %v in vain: %s", Long, what)
	}
}

// Within waits until a condition holds, and reports whether it did in time. It asks once at least.
func Within(d time.Duration, holds func() bool) bool {
	end := time.Now().Add(d)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(end) {
			return false
		}
		<-tick.C
	}
	return true
}

// Recv returns the next value of a channel, the zero value if it is closed, and fails the test at once when there is
// neither within [Long].
func Recv[T any](t testing.TB, what string, from <-chan T) (v T) {
	t.Helper()
	end := time.NewTimer(Long)
	defer end.Stop()
	select {
	case v = <-from:
	case <-end.C:
		t.Fatalf("waited %v in vain: %s", Long, what)
	}
	return v
}

// Context returns a context that ends after [Long], or with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Long)
	t.Cleanup(cancel)
	return ctx
}
