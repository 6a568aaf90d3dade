//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// errBackground is what a terminal answers to a program that runs in the background, once that is not stopped for reading.
const errBackground = syscall.EIO

// readInForegroundOnly has a program that runs in the background go on where it reads the terminal: that fails then.
func readInForegroundOnly() { signal.Ignore(syscall.SIGTTIN) }
