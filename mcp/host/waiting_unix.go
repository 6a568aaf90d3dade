//go:build unix

package host

import (
	"os"
	"syscall"
)

// own reports whether a file is this user's, and nobody else may write to it.
func own(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid() && info.Mode().Perm()&0o022 == 0
}
