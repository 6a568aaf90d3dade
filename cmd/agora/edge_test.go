package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/agoratest"
)

// running is an `agora edge` that a test has started.
type running struct {
	t              *testing.T
	public, admin  string
	stop           context.CancelFunc
	status         chan int
	stdout, stderr *output
}

// launch runs `agora edge` on free ports; it need not become ready.
func launch(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{t: t, stop: stop, status: make(chan int, 1), stdout: &output{}, stderr: &output{}}
	args = append([]string{"edge", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, args...)
	go func() { r.status <- run(ctx, args, strings.NewReader(""), r.stdout, r.stderr) }()
	t.Cleanup(func() { r.ended() })
	return r
}

var readyLine = regexp.MustCompile(`^ready\n  \S+  (wss?://\S+)  admin (https?://\S+)\n$`)

// ready waits until agents can connect.
func (r *running) ready() *running {
	r.t.Helper()
	until(r.t, "agora edge is ready", func() bool {
		if len(r.status) > 0 {
			r.t.Fatalf("agora edge ended: %s", r.stderr)
		}
		return strings.Contains(r.stdout.String(), "admin")
	})
	m := readyLine.FindStringSubmatch(r.stdout.String())
	if m == nil {
		r.t.Fatalf("output is %q", r.stdout)
	}
	r.public, r.admin = m[1], m[2]
	return r
}

// ended stops it and returns its exit status. Idempotent. Agents that are named go when they are told to: an edge waits two
// seconds for one that does not.
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
	select {
	case status := <-r.status:
		r.status <- status
		return status
	case <-time.After(patience):
		r.t.Fatalf("agora edge does not end: %s", r.stderr)
		return -1
	}
}

// until polls a condition, for there is nothing to wait on in another server.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
		<-time.After(5 * time.Millisecond) // between two looks
	}
}

// backends starts a NATS server and a redis-server, and returns the flags that
// make an edge use them.
func backends(t *testing.T) (args []string) {
	t.Helper()
	n, err := broker.Embed(t.Context(), broker.ServerConfig{Nodes: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Shutdown)
	return []string{
		"--nats.url", n.URL(), "--nats.replicas", "1", "--auth", "none",
		"--redis.url", "redis://" + agoratest.Redis(t).Addr(),
	}
}

func TestEdgesOnTheSameNATSAndRedisAreOneCluster(t *testing.T) {
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
	const delay = 2 * time.Second // bob comes within it
	e := launch(t, append(backends(t), "--drain.delay", delay.String())...).ready()
	alice := connect(t, e.public+"?agent_id=alice")
	alice.hear("agent.registered")
	if status, body := fetch(t, e.admin+"/readyz"); status != 200 {
		t.Errorf("/readyz = %d %s, want 200", status, body)
	}
	asked := time.Now()
	e.stop()
	until(t, "the edge is not ready", func() bool {
		status, _ := fetch(t, e.admin+"/readyz")
		return status == 503
	})
	bob := connect(t, e.public+"?agent_id=bob") // was on its way: still served
	bob.hear("agent.registered")
	alice.hear("agent.reconnect")
	if after := time.Since(asked); after < delay {
		t.Errorf("agents were told after %v, want the drain.delay to pass before", after)
	}
	if _, _, err := alice.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseServiceRestart) {
		t.Errorf("drained connection ended with %v, want close 1012", err)
	}
	if status := e.ended(bob); status != 0 {
		t.Errorf("agora edge ended with %d: %s", status, e.stderr)
	}
}

func TestAnEdgeDoesNotStartBeforeSomebodySaysWhoMayConnect(t *testing.T) {
	e := launch(t)
	if status := e.over(); status == 0 || !strings.Contains(e.stderr.String(), "auth must be given") {
		t.Errorf("without --auth it ended with %d: %s", status, e.stderr)
	}
}

func TestASecondEdgeUnderTheSameIDDoesNotStartWhileTheFirstLives(t *testing.T) {
	args := append(backends(t), "--id", "edge-1", "--edge.lease", "3s")
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
