// Package pause lets time pass, unless a context ends before.
package pause

import (
	"context"
	"time"
)

// For blocks for d, not at all if d is not above 0. It returns true when ctx has not ended by then, and false, at once,
// when it ends before.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
