//go:build !linux

package servers

import "syscall"

// dieWithParent does what there is to make a process end with the test's: nothing here, where only the test's cleanup
// ends it.
func dieWithParent() *syscall.SysProcAttr { return nil }
