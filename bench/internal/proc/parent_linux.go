package proc

import "syscall"

// dieWithParent makes a process end with this one, however that ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
