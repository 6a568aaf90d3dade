package agora

import "time"

var began = time.Now()

// Ticks returns how long the process has run, in nanoseconds, by the monotonic clock: a moment that fits an
// atomic and that no setting of the wall clock moves. It is never 0 or less after the first call.
func Ticks() int64 { return int64(time.Since(began)) + 1 }
