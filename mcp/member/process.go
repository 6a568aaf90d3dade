package member

import (
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora/mcp/stdio"
)

// process is a server that runs as a process, in a process group of its own where the system has such.
type process struct {
	cmd           *exec.Cmd
	stdin, stdout *os.File // our ends of its pipes
	stderr        *os.File
	done          chan struct{} // closed when it has ended, and what it had started with it
	end           error         // how it has ended; to be read once done is closed
	all           sync.WaitGroup
}

// maxStderrLine is how many bytes of a line of a server's stderr are logged.
const maxStderrLine = 4096

// afterwards is how long the pipes of a process that has ended are read: longer only where something that it has
// started left its group.
const afterwards = time.Second

// startProcess starts a command with an environment of PATH and env alone. What it writes to stderr goes to the log.
// The caller owes it a call of stop.
func startProcess(command, env []string, log *slog.Logger) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), done: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	ownGroup(p.cmd)
	theirs, err := p.pipes()
	if err == nil {
		err = p.cmd.Start()
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, err
	}
	p.all.Go(func() { logLines(p.stderr, log) })
	p.all.Go(p.wait)
	return p, nil
}

// pipes opens the pipes of the process, and returns its ends of them.
func (p *process) pipes() (theirs []*os.File, err error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.cmd.Stdin = stdin, in
	theirs = append(theirs, in)
	stdout, out, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.stdout, p.cmd.Stdout = stdout, out
	theirs = append(theirs, out)
	stderr, errs, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.stderr, p.cmd.Stderr = stderr, errs
	return append(theirs, errs), nil
}

func (p *process) closePipes() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// wait waits for the end of the process, and takes what it has started with it.
func (p *process) wait() {
	p.end = p.cmd.Wait()
	killGroup(p.cmd)
	soon := time.Now().Add(afterwards)
	_ = p.stdout.SetReadDeadline(soon)
	_ = p.stderr.SetReadDeadline(soon)
	close(p.done)
}

// stop ends the process: its stdin is closed; after a grace it gets SIGTERM, and after another one SIGKILL, all of its
// group. It returns when the process has ended and nothing of it is read any more.
func (p *process) stop(grace time.Duration) {
	p.stdin.Close()
	if !p.endsIn(grace) {
		terminateGroup(p.cmd)
		if !p.endsIn(grace) {
			killGroup(p.cmd)
		}
	}
	<-p.done
	p.all.Wait()
	p.closePipes()
}

// endsIn reports whether the process ends within a time.
func (p *process) endsIn(d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-p.done:
		return true
	case <-late.C:
		return false
	}
}

// ended returns how the process has ended, in words; "" while it runs.
func (p *process) ended() string {
	select {
	case <-p.done:
	default:
		return ""
	}
	if p.end == nil {
		return "exit status 0"
	}
	return p.end.Error()
}

// logLines logs what a server writes to stderr, line by line, until that ends.
func logLines(stderr *os.File, log *slog.Logger) {
	l := stdio.NewLines(stderr, maxStderrLine)
	for {
		line, _, long, err := l.Next()
		text := strings.ToValidUTF8(string(line), "\uFFFD")
		if long {
			text += "…"
		}
		if text != "" {
			log.Info(text, "source", "stderr")
		}
		if err != nil {
			return
		}
	}
}
