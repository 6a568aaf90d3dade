//go:build unix

package stdio

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// gone reports whether nobody reads any more what is written to a pipe or a socket. Of other writers it is not known.
func gone(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	fds := []unix.PollFd{{}}
	err = conn.Control(func(fd uintptr) {
		fds[0].Fd = int32(fd)
		_, _ = unix.Poll(fds, 0) // of one that fails nothing is known
	})
	return err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
