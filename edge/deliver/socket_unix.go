//go:build unix

package deliver

import "syscall"

// writeSome writes what a socket takes at once, and returns how much that was.
func writeSome(fd uintptr, b []byte) int {
	n, _ := syscall.Write(int(fd), b)
	return max(n, 0)
}
