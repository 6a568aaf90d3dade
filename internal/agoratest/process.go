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
// A test process takes them in blocks, and holds the first port of each block for as long as it lives: nobody else gives away one of that block.
const firstPort, lastPort, portBlock = 18000, 32000, 100

var steady struct {
	mu   sync.Mutex // guards the fields below
	held []net.Listener
	next int // the next port; 0 before the first block
}

// steadyPort returns a loopback port that nobody has at the moment, and that no connection and no other test process will be given.
func steadyPort() (int, error) {
	steady.mu.Lock()
	defer steady.mu.Unlock()
	for range lastPort - firstPort {
		if steady.next%portBlock == 0 && !takeBlock() {
			break
		}
		n := steady.next
		steady.next++
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n)))
		if err == nil {
			return n, l.Close()
		}
	}
	return 0, errors.New("agoratest: no port is free")
}

// takeBlock has steady go on with a block of ports that no other process holds, if there is one. The caller holds its lock.
func takeBlock() bool {
	for n := firstPort; n < lastPort; n += portBlock {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n))); err == nil {
			steady.held, steady.next = append(steady.held, l), n+1
			return true
		}
	}
	return false
}

// steadyAddr is steadyPort with its host.
func steadyAddr() (string, error) {
	port, err := steadyPort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
