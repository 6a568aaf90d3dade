package simcluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
)

// A process plays one history at a time, on one processor, so players are processes: this test's own program, told to
// be one.
const playerVariable = "AGORA_SIMCLUSTER_PLAYER"

// longest is how long a history may take of the machine's time: on one that is busy, a thousand times what it should.
const longest = 2 * time.Minute

// TestPlayer is a player: it takes plans, a line each, and answers each with its result. It is no test.
func TestPlayer(t *testing.T) {
	if os.Getenv(playerVariable) == "" {
		return
	}
	if err := limitMemory(); err != nil {
		t.Fatal(err)
	}
	debug.SetGCPercent(-1) // nor between histories: each begins with a collection
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var p Plan
		if err := json.Unmarshal(in.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if len(p.Steps) == 0 {
			tell := p.Tell
			p = MakePlan(p.Seed)
			p.Tell = tell
		}
		r := Play(t, p)
		if len(r.Failures) == 0 && !p.Tell {
			r.Story = nil
		}
		if err := out.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
}

// player is a process that plays histories. One goroutine at a time may use it.
type player struct {
	env    []string // added to its own
	cmd    *exec.Cmd
	in     *json.Encoder
	out    *bufio.Reader
	stderr *tail
	stop   func()
}

// start starts the process, unless it runs.
func (p *player) start() error {
	if p.cmd != nil {
		return nil
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestPlayer$", "-test.timeout", "0")
	// Nothing of this one's environment, which may have what a Go program goes by.
	cmd.Env = append(slices.Clone(p.env), playerVariable+"=1", "GOMAXPROCS=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.stderr = new(tail)
	cmd.Stderr = p.stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.in, p.out = cmd, json.NewEncoder(in), bufio.NewReaderSize(out, 1<<20)
	p.stop = func() { _ = in.Close() }
	return nil
}

// play plays a history. Whatever becomes of the process is the history's failure.
func (p *player) play(plan Plan) Result {
	if err := p.start(); err != nil {
		return Result{Plan: plan, Failures: []string{err.Error()}}
	}
	late := time.AfterFunc(longest, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	var r Result
	err := p.in.Encode(plan)
	var line []byte
	if err == nil {
		line, err = p.out.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err == nil {
		return r
	}
	said, _ := p.out.Peek(p.out.Buffered()) // what a panic has printed
	p.end()
	return Result{Plan: plan, Failures: []string{fmt.Sprintf("the history did not come to its end: %v\n%s%s%s", err, line, said, p.stderr)}}
}

// end ends the process.
func (p *player) end() {
	if p.cmd != nil {
		p.stop()
		_ = p.cmd.Process.Kill() // what it plays is nobody's any more
		_ = p.cmd.Wait()         // killed
		p.cmd = nil
	}
}

// playOnce plays a history in a process of its own: what a process has played leaves its mark on what it plays next.
func playOnce(env []string, plan Plan) Result {
	p := player{env: env}
	defer p.end()
	return p.play(plan)
}

// playAll plays the plans that next gives, until it gives no more, so many at once; each result is passed to take, one
// at a time.
func playAll(players int, env []string, next func() (Plan, bool), take func(Result)) {
	var all sync.WaitGroup
	var mu sync.Mutex
	give := func() (Plan, bool) {
		mu.Lock()
		defer mu.Unlock()
		return next()
	}
	for range players {
		all.Go(func() {
			for plan, more := give(); more; plan, more = give() {
				r := playOnce(env, plan)
				mu.Lock()
				take(r)
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

// tail keeps the beginning and the end of what is written: a process that dies says first why. Its methods may be
// called at the same time.
type tail struct {
	mu    sync.Mutex // guards the fields below
	first []byte
	b     []byte // what follows first, the end of it
}

// Write keeps the beginning and the end of what there is.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const mostFirst, most = 1 << 10, 64 << 10
	n := min(len(b), mostFirst-len(t.first))
	t.first = append(t.first, b[:n]...)
	t.b = append(t.b, b[n:]...)
	if len(t.b) > most {
		t.b = append([]byte("\n…\n"), t.b[len(t.b)-most:]...)
	}
	return len(b), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(slices.Concat(t.first, t.b)))
}
