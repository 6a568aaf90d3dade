package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

// running is an `agora edge` that a test has started.
type running struct {
	t              *testing.T
	public, admin  string
	grpc           string // HOST:PORT
	stop           context.CancelFunc
	status         chan int
	stdout, stderr *output
}

// launch runs `agora edge` on free ports; it need not become ready.
func launch(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{t: t, stop: stop, status: make(chan int, 1), stdout: &output{}, stderr: &output{}}
	go func() { r.status <- run(ctx, edgeArgs(args), strings.NewReader(""), r.stdout, r.stderr) }()
	t.Cleanup(func() { r.ended() })
	return r
}

// launchApart runs it in a process of its own, which the test's end kills. Any goroutine may call it.
func launchApart(t *testing.T, args ...string) *running {
	t.Helper()
	return launchIn(t, nil, args...)
}

// launchIn does the same, with more environment.
func launchIn(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	cmd := exec.Command(os.Args[0], edgeArgs(args)...)
	cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), env...)
	r := &running{t: t, status: make(chan int, 1), stdout: &output{}, stderr: &output{}}
	cmd.Stdout, cmd.Stderr = r.stdout, r.stderr
	if err := cmd.Start(); err != nil {
		t.Error(err)
		r.status <- -1
		return r
	}
	r.stop = func() { cmd.Process.Signal(os.Interrupt) }
	go func() {
		cmd.Wait()
		r.status <- cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		r.over()
	})
	return r
}

func edgeArgs(args []string) []string {
	return slices.Concat([]string{"edge", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--p2p-addr", "127.0.0.1:0", "--edge.lease", "1m", "--start.timeout", "1h"}, calm, args)
}

// calm are settings by which no pause of a busy machine ends a session.
var calm = []string{"--session.grace", "1h", "--session.timeout", "1h"}

// readyLine is what an edge says when agents can connect, in either format.
var readyLine = regexp.MustCompile(`^(?:ready\n  \S+  |\{.*"msg":"ready".*"agents":")(wss?://[^\s"]+)(?:(?:  |","grpc":")grpcs?://([^\s"]+))?(?:(?:  |","p2p":")/[^\s"]+)?(?:  admin |","admin":")(https?://[^\s"]+)(?:"\})?\n$`)

// ready waits until agents can connect.
func (r *running) ready() *running {
	r.t.Helper()
	await.True(r.t, "agora edge is ready", func() bool {
		if len(r.status) > 0 {
			r.t.Fatalf("agora edge ended: %s", r.stderr)
		}
		return r.greeted()
	})
	return r
}

// greeted reports whether it has said that agents can connect, and where.
func (r *running) greeted() bool {
	m := readyLine.FindStringSubmatch(r.stdout.String())
	if m != nil {
		r.public, r.grpc, r.admin = m[1], m[2], m[3]
	}
	return m != nil
}

// ended stops it and returns its exit status. Idempotent. Agents that are named go when they are told to: an edge waits
// two seconds for one that does not.
func (r *running) ended(agents ...*agent) int {
	r.t.Helper()
	r.stop()
	for _, a := range agents {
		a.goes()
	}
	return r.over()
}

// over waits until it has ended by itself.
func (r *running) over() int {
	r.t.Helper()
	if !await.Within(await.Long, func() bool { return len(r.status) > 0 }) {
		r.t.Fatalf("agora edge does not end: %s", r.stderr)
	}
	status := <-r.status
	r.status <- status
	return status
}

// backends starts a NATS server and a redis-server, and returns the flags that
// make an edge use them.
func backends(t *testing.T) (args []string) {
	t.Helper()
	return []string{
		"--nats.url", embedded(t), "--nats.replicas", "1", "--nats.shards", "1", "--nats.storage", "memory", "--auth", "none",
		"--redis.url", "redis://" + servers.Redis(t).Addr(),
	}
}

// embedded starts a NATS server in this process, and returns its address.
func embedded(t *testing.T) string {
	t.Helper()
	n, err := natsd.Embed(t.Context(), natsd.Config{Nodes: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Shutdown)
	return n.URL()
}

func TestEdgesOnTheSameNATSAndRedisAreOneCluster(t *testing.T) {
	t.Parallel()
	args := backends(t)
	one, two := launch(t, args...).ready(), launch(t, args...).ready()
	alice, bob := connect(t, one.public+"?agent_id=alice"), connect(t, two.public+"?agent_id=bob")
	alice.hear("agent.registered")
	bob.hear("agent.registered")
	alice.say(`{"type":"send","to":"bob","payload":{"a":1}}`)
	if f := bob.hear("message"); f.From != "alice" || string(f.Payload) != `{"a":1}` {
		t.Errorf("message = %+v", f)
	}
	one.stop()
	alice.hear("agent.reconnect")
	if status := one.ended(alice); status != 0 {
		t.Errorf("drained edge ended with %d: %s", status, one.stderr)
	}
}

func TestAnEdgeThatIsAskedToEndIsNotReadyBeforeItDrains(t *testing.T) {
	t.Parallel()
	args := backends(t)
	for delay := 500 * time.Millisecond; !endsAfter(t, delay, args); delay *= 4 {
		t.Logf("the machine is too busy for a drain.delay of %v", delay)
	}
}

// endsAfter has an edge end that has a drain.delay. It returns false when the agent that is to come within it did not
// get there in time.
func endsAfter(t *testing.T, delay time.Duration, args []string) (inTime bool) {
	t.Helper()
	e := launch(t, append(args, "--drain.delay", delay.String())...).ready()
	alice := connect(t, e.public+"?agent_id=alice")
	alice.hear("agent.registered")
	if status, body := fetch(t, e.admin+"/readyz"); status != 200 {
		t.Errorf("/readyz = %d %s, want 200", status, body)
	}
	asked := time.Now()
	e.stop()
	await.True(t, "the edge is not ready, or has ended", func() bool {
		c := http.Client{Timeout: await.Long}
		resp, err := c.Get(e.admin + "/readyz")
		if err == nil {
			resp.Body.Close()
		}
		return err != nil || resp.StatusCode == 503
	})
	bob, _, err := websocket.DefaultDialer.Dial(e.public+"?agent_id=bob", nil) // was on its way: still served
	var first []byte
	if err == nil {
		defer bob.Close()
		_, first, err = bob.ReadMessage()
	}
	if time.Since(asked) >= delay {
		return false
	}
	if err != nil || !bytes.Contains(first, []byte("agent.registered")) {
		t.Errorf("who comes within drain.delay gets %s (%v)", first, err)
	}
	alice.hear("agent.reconnect")
	if after := time.Since(asked); after < delay {
		t.Errorf("agents were told after %v, want the drain.delay to pass before", after)
	}
	if _, _, err := alice.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseServiceRestart) {
		t.Errorf("drained connection ended with %v, want close 1012", err)
	}
	if status := e.ended(&agent{t, bob}); status != 0 {
		t.Errorf("agora edge ended with %d: %s", status, e.stderr)
	}
	return true
}

func TestAnEdgeDoesNotStartBeforeSomebodySaysWhoMayConnect(t *testing.T) {
	t.Parallel()
	e := launch(t)
	if status := e.over(); status == 0 || !strings.Contains(e.stderr.String(), "auth must be given") {
		t.Errorf("without --auth it ended with %d: %s", status, e.stderr)
	}
}

func TestASecondEdgeUnderTheSameIDDoesNotStartWhileTheFirstLives(t *testing.T) {
	t.Parallel()
	args := append(backends(t), "--id", "edge-1")
	one := launch(t, args...).ready()
	two := launch(t, args...)
	if status := two.over(); status == 0 || !strings.Contains(two.stderr.String(), `another edge runs under the id "edge-1"`) {
		t.Errorf("the second one ended with %d: %s", status, two.stderr)
	}
	alice := connect(t, one.public+"?agent_id=alice")
	alice.hear("agent.registered")
	one.ended(alice)
	launch(t, args...).ready() // its place is free
}
