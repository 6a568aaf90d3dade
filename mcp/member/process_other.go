//go:build !unix

package member

import "os/exec"

// There are no process groups here: the process alone is ended, and what it has started ends with its pipes.

func ownGroup(*exec.Cmd) {}

func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
