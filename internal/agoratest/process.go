package agoratest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is a program of a test's own: it may be killed, frozen and started again,
// and does not outlive the test. Its methods are for one goroutine.
type process struct {
	argv []string
	env  []string // added to the test's own
	log  string   // file that takes what it says, of all its lives

	cmd    *exec.Cmd      // nil before the first start
	gone   chan struct{}  // closed when it has ended
	reaper sync.WaitGroup // waits for its end
}

// start starts it; it does nothing while the process runs.
func (p *process) start() error {
	if p.running() {
		return nil
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() // the process has its own
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
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

// running tells whether it has been started and not ended.
func (p *process) running() bool {
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

// signal sends a signal; a process that has ended takes none.
func (p *process) signal(s syscall.Signal) {
	if p.running() {
		_ = p.cmd.Process.Signal(s) // it may end just now
	}
}

// kill ends it without a chance to do anything more, and waits for its end.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	p.reaper.Wait()
}

// end asks it to end and waits, for so long at most; it fails unless the process says that all went well.
func (p *process) end(within time.Duration) error {
	if !p.running() {
		return errors.New("it had ended before")
	}
	p.signal(syscall.SIGTERM)
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

// tail returns the last lines that it said.
func (p *process) tail(lines int) string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// gist returns the last lines of the log, of those that say the same one after the other only the last.
func (p *process) gist(lines int) string {
	var all []string
	said := ""
	for line := range strings.SplitSeq(p.tail(200), "\n") {
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

// Ports of servers that are to have the same one after a restart lie below those that
// the system gives to connections: it might give one away in between. (On Linux those begin at 32768.)
const firstPort, lastPort = 18000, 32000

var lastSteady atomic.Int64

// steadyPort returns a loopback port that nobody has at the moment, and that no connection will be given.
func steadyPort() (int, error) {
	for range lastPort - firstPort {
		// Test processes that run at the same time begin at different places, further apart than any of them goes.
		n := firstPort + (os.Getpid()*997+int(lastSteady.Add(1)))%(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n)))
		if err == nil {
			return n, l.Close()
		}
	}
	return 0, errors.New("agoratest: no port is free")
}

// steadyAddr is steadyPort with its host.
func steadyAddr() (string, error) {
	port, err := steadyPort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
