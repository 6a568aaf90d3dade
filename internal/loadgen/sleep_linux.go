package loadgen

import (
	"syscall"
	"time"
)

const prSetTimerslack = 29

// sharpen has the sleeps of this thread end when they should: by default they take up to 50 µs more.
func sharpen() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerslack, 1, 0) // without it sleeps are less precise
}

// sleep sleeps by the kernel's timers: those of the runtime have a resolution of a millisecond.
func sleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // the one who is woken early sleeps again
}
