package load

import (
	"context"
	"time"
)

// Quiet waits until servers have dealt with what they were sent, and use less than a tenth of a processor; ten seconds at most.
func Quiet(ctx context.Context, t Target) error {
	const look = 200 * time.Millisecond
	used := t.Usage().CPU
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if err := pause(ctx, look); err != nil {
			return err
		}
		now := t.Usage().CPU
		if now-used < look/10 {
			return nil
		}
		used = now
	}
	return nil
}
