package tools

import (
	"syscall"
	"time"
)

// ofThread has getrusage tell of the calling thread alone.
const ofThread = 1

// cpuTime returns how much time of processors the calling thread has taken.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(ofThread, &u); err != nil {
		return time.Since(begun)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// begun is before all checks.
var begun = time.Now()
