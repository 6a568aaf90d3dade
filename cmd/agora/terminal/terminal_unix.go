//go:build unix

package terminal

import (
	"os/signal"
	"syscall"
)

// ErrBackground is what a terminal answers to a program that runs in the background, once that is not stopped for
// reading.
const ErrBackground = syscall.EIO

// ReadInForegroundOnly has a program that runs in the background go on where it reads the terminal: that fails then.
func ReadInForegroundOnly() { signal.Ignore(syscall.SIGTTIN) }
