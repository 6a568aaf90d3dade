// Package proc runs the servers of a system under test, each as a process of
// its own, and tells what they cost.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running server. It ends with the program that started it.
type Process struct {
	Name string

	cmd  *exec.Cmd
	log  string        // file that takes what it says
	gone chan struct{} // closed when it has ended
}

// Start starts a command, with env besides this program's own environment; what it says goes to NAME.log in dir.
func Start(dir, name string, env []string, argv ...string) (*Process, error) {
	p := &Process{Name: name, cmd: exec.Command(argv[0], argv[1:]...), log: filepath.Join(dir, name+".log"), gone: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = dieWithParent()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // Stop waits for it
		_ = p.cmd.Wait() // how it ended does not matter
		close(p.gone)
	}()
	return p, nil
}

// Stop asks the process to end, kills it after two seconds, and returns when it has ended.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.gone:
	case <-time.After(2 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
}

// Await polls until ready says true; it fails when that takes too long or the process ends.
func (p *Process) Await(within time.Duration, ready func() bool) error {
	deadline := time.After(within)
	for !ready() {
		select {
		case <-p.gone:
			return p.Ended()
		case <-deadline:
			return fmt.Errorf("%s is not ready after %v: %s", p.Name, within, p.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// tail returns the last of what it said.
func (p *Process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b[max(0, len(b)-2000):]))
}

// Ended returns why the process is not running any more: the last it said, cut to some lines; nil while it runs.
func (p *Process) Ended() error {
	select {
	case <-p.gone:
		return fmt.Errorf("%s ended: %v: %s", p.Name, p.cmd.ProcessState, p.tail())
	default:
		return nil
	}
}

// CPU returns the user and system time that the process and its children have used, all threads
// included, in steps of 10 ms.
func (p *Process) CPU() (used time.Duration) {
	select {
	case <-p.gone:
		return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	default:
	}
	for _, pid := range p.family() {
		used += cpu(pid)
	}
	return used
}

// RSS returns the bytes of memory that the process and its children have now; 0 when it has ended.
func (p *Process) RSS() (bytes int64) {
	for _, pid := range p.family() {
		bytes += rss(pid)
	}
	return bytes
}

// Held returns those bytes of RSS that are no pages of files, such as those of the program itself.
func (p *Process) Held() (bytes int64) {
	for _, pid := range p.family() {
		bytes += rss(pid) - pages(pid, 2)
	}
	return bytes
}

// family returns the ids of the process and of its children.
func (p *Process) family() []int {
	all := []int{p.cmd.Process.Pid}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", all[0]))
	if err != nil {
		return all
	}
	for _, f := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(f); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

func cpu(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond // Linux counts for programs in hundredths of a second
}

func rss(pid int) int64 { return pages(pid, 1) }

// pages returns a field of /proc/PID/statm, in bytes: 1 is what is resident, 2 what of it is of files.
func pages(pid, field int) int64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.Fields(string(statm))[field], 10, 64)
	if err != nil {
		return 0
	}
	return n * int64(os.Getpagesize())
}
