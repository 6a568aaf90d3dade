package agoratest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
	"github.com/agora-relay/agora/internal/servers"
)

// EdgeProcess is an `agora edge` process. It reaches each NATS node and presence through
// lines of its own. Its methods are for the test's goroutine.
type EdgeProcess struct {
	Log      []*faultnet.Proxy // one to each NATS node
	Presence *faultnet.Proxy   // nil with Sentinel or a Redis Cluster, which tell clients the servers' own addresses

	t                      testing.TB
	proc                   servers.Process
	addr, grpc, p2p, admin string
}

// newEdge describes edge k of a cluster.
func (c *Processes) newEdge(dir string, k int) *EdgeProcess {
	c.t.Helper()
	e := &EdgeProcess{t: c.t}
	for _, at := range []*string{&e.addr, &e.grpc, &e.p2p, &e.admin} {
		var err error
		if *at, err = servers.Addr(); err != nil {
			c.t.Fatal(err)
		}
	}
	var urls []string
	for _, n := range c.NATS.Nodes {
		line := faultnet.NewProxy(c.t, n.Addr())
		e.Log = append(e.Log, line)
		urls = append(urls, "nats://"+line.Addr())
	}
	presence := ""
	switch {
	case c.Sentinel != nil:
		presence = c.Sentinel.URL()
	case c.Sharded != nil:
		presence = c.Sharded.URL()
	default:
		e.Presence = faultnet.NewProxy(c.t, c.Redis.Addr())
		presence = "redis://" + e.Presence.Addr()
	}
	name := fmt.Sprintf("edge-%d", k)
	e.proc.Log = filepath.Join(dir, name+".log")
	e.proc.Argv = append([]string{c.opts.Binary, "edge", "--id", name, "--addr", e.addr, "--admin-addr", e.admin, "--grpc-addr", e.grpc, "--p2p-addr", e.p2p, "--auth", "none",
		"--nats.url", strings.Join(urls, ","), "--nats.user", servers.EdgeUser, "--nats.password", servers.EdgePassword,
		"--redis.url", presence, "--redis.user", servers.EdgeUser, "--redis.password", servers.EdgePassword}, c.opts.Flags...)
	if k < len(c.opts.Leases) {
		e.proc.Argv = append(e.proc.Argv, "--edge.lease", c.opts.Leases[k].String())
	}
	return e
}

// URL returns where its agents connect.
func (e *EdgeProcess) URL() string { return "ws://" + e.addr + "/ws" }

// GRPC returns where its AIP agents connect, as HOST:PORT.
func (e *EdgeProcess) GRPC() string { return e.grpc }

// Start starts it, under the same addresses, and does not wait for it.
func (e *EdgeProcess) Start() {
	e.t.Helper()
	if err := e.proc.Start(); err != nil {
		e.t.Fatalf("start an edge: %v", err)
	}
}

// Binary returns the path of what it runs.
func (e *EdgeProcess) Binary() string { return e.proc.Argv[0] }

// Become has it run another binary from its next start on, with more in its environment.
func (e *EdgeProcess) Become(binary string, env ...string) { e.proc.Argv[0], e.proc.Env = binary, env }

// Kill ends it with SIGKILL.
func (e *EdgeProcess) Kill() { e.proc.Kill() }

// Freeze stops it with SIGSTOP: its sockets stay, and nothing of it moves.
func (e *EdgeProcess) Freeze() { e.proc.Signal(syscall.SIGSTOP) }

// Thaw lets it go on.
func (e *EdgeProcess) Thaw() { e.proc.Signal(syscall.SIGCONT) }

// Drain ends it with SIGTERM and waits; the test fails unless it ends in order within its time.
func (e *EdgeProcess) Drain() {
	e.t.Helper()
	if err := e.proc.End(2 * patience); err != nil {
		e.t.Errorf("drain %s: %v\n%s", e.proc.Argv[3], err, e.proc.Tail(15))
	}
}

// IsReady reports whether it says that it can serve agents.
func (e *EdgeProcess) IsReady() bool { return servers.AnswersOK("http://" + e.admin + "/readyz") }

// NotReady waits until it says that it can't serve agents, as a balancer must hear.
func (e *EdgeProcess) NotReady() {
	e.t.Helper()
	if !await.Within(patience, func() bool { return !e.IsReady() }) {
		e.t.Errorf("%s still says that it is ready", e.proc.Argv[3])
	}
}

// Ready waits until it says that it can serve agents.
func (e *EdgeProcess) Ready() {
	e.t.Helper()
	if !await.Within(2*patience, e.IsReady) {
		e.t.Fatalf("%s is not ready:\n%s", e.proc.Argv[3], e.proc.Tail(15))
	}
}

// mend takes away whatever was done to the edge, and starts it where it has ended.
func (e *EdgeProcess) mend() {
	e.t.Helper()
	e.Thaw()
	for _, line := range e.Log {
		line.Mend()
	}
	if e.Presence != nil {
		e.Presence.Mend()
	}
	e.Start()
}

// CutLog cuts it off from every NATS node, and from nothing else, until it is mended.
func (e *EdgeProcess) CutLog() {
	for _, line := range e.Log {
		line.Cut()
	}
}

// SilenceLog is like CutLog, but nothing tells the edge: its connections go silent.
func (e *EdgeProcess) SilenceLog() {
	for _, line := range e.Log {
		line.Silence()
	}
}

// DeafenLog lets what it says reach NATS, but no answer and nothing else come back.
func (e *EdgeProcess) DeafenLog() {
	for _, line := range e.Log {
		line.Deafen()
	}
}

// Pin leaves it the line to one NATS node alone, until MendLog.
func (e *EdgeProcess) Pin(node int) {
	for k, line := range e.Log {
		if k == node {
			line.Mend()
		} else {
			line.Cut()
		}
	}
}

// MendLog ends whatever was done to its lines to NATS.
func (e *EdgeProcess) MendLog() {
	for _, line := range e.Log {
		line.Mend()
	}
}

// BuildAgora builds the command under build tags, and returns its path. It is that of the go command's cache, so that
// not every test links it again.
func BuildAgora(t testing.TB, tags string) string {
	t.Helper()
	path, err := buildAgora(tags)
	if err != nil {
		t.Fatalf("build agora: %v", err)
	}
	return path
}

// buildAgora has the go command run it by a program that says where it is. What it has just linked is in the cache from
// then on.
func buildAgora(tags string) (path string, err error) {
	for range 2 {
		cmd := exec.Command("go", "run", "-tags", tags, "-exec", "echo", "github.com/agora-relay/agora/cmd/agora")
		var faults strings.Builder
		cmd.Stderr = &faults
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, &faults)
		}
		path = strings.TrimSpace(string(out))
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program is left at %s", path)
}
