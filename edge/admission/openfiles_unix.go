//go:build unix

package admission

import "syscall"

// openFiles returns how many files the process may have open; 0 when unknown.
func openFiles() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur) // its type differs from system to system
}
