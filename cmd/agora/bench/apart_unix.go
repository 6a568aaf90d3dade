//go:build unix

package bench

import (
	"os/exec"
	"syscall"
)

// apart has a child live on when the terminal is told Ctrl-C, which its parent ends in order by.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
