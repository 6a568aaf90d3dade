//go:build !linux

package tools

import "time"

// cpuTime returns a time that continues at least as fast as the calling thread takes that of processors.
func cpuTime() time.Duration { return time.Since(begun) }

// begun is before all checks.
var begun = time.Now()
