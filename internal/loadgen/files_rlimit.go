//go:build linux || darwin

package loadgen

import "syscall"

// Files has this process, and those that it starts from now on, open so many files if it may, and
// returns how many they may.
func Files(n uint64) uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	if uint64(l.Cur) >= n {
		return uint64(l.Cur)
	}
	wish := l
	wish.Cur, wish.Max = n, max(n, l.Max)
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &wish) == nil { // beyond the hard limit only for those who may
		return n
	}
	l.Cur = l.Max
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur)
}
