//go:build unix

package member

import (
	"os/exec"
	"syscall"
)

// ownGroup has a command start in a process group of its own: what it starts ends with it, and a Ctrl-C at our terminal
// does not reach it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminateGroup sends SIGTERM to a command that was started and all of its group.
func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// killGroup sends SIGKILL to a command that was started, or has ended, and all of its group.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
