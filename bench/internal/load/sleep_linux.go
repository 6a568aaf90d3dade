package load

import (
	"runtime"
	"syscall"
	"time"
)

const prSetTimerslack = 29

// sharply calls f on a thread whose sleeps end when they should, and not some 50 µs later.
func sharply(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerslack, 1, 0) // without it sleeps are less precise
	f()
}

// sleep sleeps by the kernel's timers: those of the runtime are coarser than what is measured.
func sleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // whoever is woken early finds out
}
