//go:build unix

package main

import (
	"syscall"
	"testing"
)

// fifo makes a pipe that a program waits at which opens it.
func fifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
