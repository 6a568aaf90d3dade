package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program of a test's own: it may be killed, frozen and started again. Anyone who starts it has Kill
// called when the test ends; on Linux it dies with the test's process in any case. Its methods are for one goroutine.
type Process struct {
	Argv []string // the program and its arguments
	Env  []string // added to the test's own
	Log  string   // file that takes what it says, of all its lives

	cmd    *exec.Cmd      // nil before the first start
	gone   chan struct{}  // closed when it has ended
	reaper sync.WaitGroup // waits for its end
}

// Start starts it; it does nothing while the process runs.
func (p *Process) Start() error {
	if p.Running() {
		return nil
	}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() // the process has its own
	cmd := exec.Command(p.Argv[0], p.Argv[1:]...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	p.cmd, p.gone = cmd, gone
	p.reaper.Go(func() {
		_ = cmd.Wait() // how it ended is in its state
		close(gone)
	})
	return nil
}

// Running reports whether it has been started and not ended.
func (p *Process) Running() bool {
	if p.gone == nil {
		return false
	}
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// Signal sends a signal; a process that has ended takes none.
func (p *Process) Signal(s syscall.Signal) {
	if p.Running() {
		_ = p.cmd.Process.Signal(s) // it may end just now
	}
}

// Kill ends it without a chance to do anything more, and waits for its end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	p.reaper.Wait()
}

// End asks it to end and waits, for so long at most; it fails unless the process says that all went well.
func (p *Process) End(within time.Duration) error {
	if !p.Running() {
		return errors.New("it had ended before")
	}
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-time.After(within):
		return fmt.Errorf("it did not end within %v", within)
	}
	p.reaper.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("it ended with %v", p.cmd.ProcessState)
	}
	return nil
}

// Tail returns the last lines that it said.
func (p *Process) Tail(lines int) string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// Gist returns the last lines of the log, of those that say the same one after the other only the last.
func (p *Process) Gist(lines int) string {
	var all []string
	said := ""
	for line := range strings.SplitSeq(p.Tail(200), "\n") {
		_, message, _ := strings.Cut(line, " msg=")
		message, _, _ = strings.Cut(message, "err=")
		if message != "" && message == said {
			all = all[:len(all)-1]
		}
		said = message
		all = append(all, line)
	}
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
