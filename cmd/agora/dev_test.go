package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

func TestMain(m *testing.M) {
	runsAsProgram()
	forgetSettings()
	os.Setenv(runEnv, "1") // of every process that a test starts
	goleak.VerifyTestMain(m)
}

// forgetSettings has tests run without the settings of the one who runs them, such as the AGORA_URL and AGORA_TOKEN of
// the README.
func forgetSettings() {
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "AGORA_") && !ofTests.MatchString(name) {
			os.Unsetenv(name)
		}
	}
}

// ofTests are variables for tests themselves.
var ofTests = regexp.MustCompile(`^AGORA_(TEST_.*|BENCH_.*|UPDATE_DOCS|SABOTAGE|SABOTAGE_CLOCK)$`)

// output collects what a program prints while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// dev is a running `agora dev`.
type dev struct {
	public, grpc, admin []string
	peers               []string // where peers of libp2p connect
	stop                context.CancelFunc
	status              chan int
	stderr              *output
}

var edgeLine = regexp.MustCompile(`(?m)^  edge-\d+  (wss?://\S+)(?:  grpcs?://(\S+))?(?:  (/\S+/p2p/\S+))?  admin (https?://\S+)$`)

// startDev runs `agora dev` on free ports until it says ready.
func startDev(t *testing.T, args ...string) *dev {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	d := &dev{stop: stop, status: make(chan int, 1), stderr: &output{}}
	stdout := &output{}
	own := []string{"dev", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--p2p-addr", "127.0.0.1:0"}
	if !slices.Contains(args, "--config") { // a flag would go before what the file says
		own = append(own, calm...)
	}
	args = append(own, args...)
	go func() { d.status <- run(ctx, args, strings.NewReader(""), stdout, d.stderr) }()
	t.Cleanup(func() { d.end(t) })
	ready := func() bool { return strings.Contains(stdout.String(), "agora --help") }
	await.Within(await.Long, func() bool { return ready() || len(d.status) > 0 })
	if !ready() {
		t.Fatalf("agora dev did not become ready:\n%s%s", stdout, d.stderr)
	}
	if !strings.HasPrefix(stdout.String(), "ready\n") {
		t.Errorf("output does not begin with ready:\n%s", stdout)
	}
	for _, m := range edgeLine.FindAllStringSubmatch(stdout.String(), -1) {
		d.public, d.grpc, d.peers, d.admin = append(d.public, m[1]), append(d.grpc, m[2]), append(d.peers, m[3]), append(d.admin, m[4])
	}
	return d
}

// end stops it and wants it to end well. Idempotent. Agents that are named go when they are told to.
func (d *dev) end(t *testing.T, agents ...*agent) {
	t.Helper()
	d.stop()
	for _, a := range agents {
		a.goes()
	}
	if !await.Within(await.Long, func() bool { return len(d.status) > 0 }) {
		t.Fatalf("agora dev did not end:\n%s", d.stderr)
	}
	status := <-d.status
	d.status <- status
	if status != 0 {
		t.Errorf("agora dev ended with %d:\n%s", status, d.stderr)
	}
}

// agent is a raw peer.
type agent struct {
	t *testing.T
	*websocket.Conn
}

func connect(t *testing.T, address string) *agent {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(await.Long))
	return &agent{t, c}
}

func (a *agent) say(frame string) {
	a.t.Helper()
	if err := a.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		a.t.Fatal(err)
	}
}

// goes reads until the edge closes the connection, and closes it too, as the one who is told to reconnect does.
func (a *agent) goes() {
	a.t.Helper()
	for {
		if _, _, err := a.ReadMessage(); err != nil {
			a.Close()
			return
		}
	}
}

// hear reads the next frame, which must be of the type.
func (a *agent) hear(typ string) wire.Frame {
	a.t.Helper()
	_, b, err := a.ReadMessage()
	if err != nil {
		a.t.Fatal(err)
	}
	var f wire.Frame
	if err := wire.DecodeAnswer(b, &f); err != nil || f.Type != typ {
		a.t.Fatalf("got %s (%v), want %s", b, err, typ)
	}
	return f
}

// hearBoth hears two frames, in whichever order they come.
func (a *agent) hearBoth(one, other string) {
	a.t.Helper()
	want := []string{one, other}
	for range want {
		_, b, err := a.ReadMessage()
		if err != nil {
			a.t.Fatal(err)
		}
		var f wire.Frame
		err = wire.DecodeAnswer(b, &f)
		at := slices.Index(want, f.Type)
		if err != nil || at < 0 {
			a.t.Fatalf("got %s (%v), want one of %q", b, err, want)
		}
		want[at] = ""
	}
}

func TestDevRelaysBetweenItsEdges(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2")
	if len(d.public) != 2 {
		t.Fatalf("%d edges, want 2", len(d.public))
	}
	alice := connect(t, d.public[0]+"?agent_id=alice")
	if f := alice.hear("agent.registered"); f.ID != "" || f.Agent.ID != "alice" || !strings.HasPrefix(f.Agent.ConnectionID, "ws-") || f.HeartbeatInterval != 30 {
		t.Errorf("agent.registered = %+v", f)
	}
	bob := connect(t, d.public[1])
	bob.say(`{"type":"register","id":"bob","name":"Bob"}`)
	bob.hear("registered")

	bob.say(`{"type":"send","to":"alice","stream_id":"s","stream":true,"payload":{"a": 1.0}}`)
	if f := alice.hear("message"); f.From != "bob" || !f.Stream || string(f.Payload) != `{"a": 1.0}` {
		t.Errorf("message = %+v", f)
	}
	for i := range 50 {
		bob.say(fmt.Sprintf(`{"type":"send_chunk","to":"alice","stream_id":"s","chunk":" %d"}`, i))
	}
	bob.say(`{"type":"send_end","to":"alice","stream_id":"s","id":"m1"}`)
	for i := range 50 {
		if f := alice.hear("message_chunk"); string(f.Chunk) != fmt.Sprintf(`" %d"`, i) {
			t.Fatalf("chunk %d = %s", i, f.Chunk)
		}
	}
	end := alice.hear("message_end")
	if f := bob.hear("receipt"); f.RequestID != "m1" || f.Seq != end.Seq {
		t.Errorf("receipt = %+v, want seq %d", f, end.Seq)
	}

	bob.say(`{"type":"send","to":"nobody","id":"m2"}`)
	if f := bob.hear("error"); f.Code != "AGENT_NOT_FOUND" || f.RequestID != "m2" || f.To != "nobody" {
		t.Errorf("error = %+v", f)
	}
	bob.say(`{"type":"list"}`)
	if f := bob.hear("agents"); len(f.Agents) != 2 || f.Agents[1].Name != "Bob" {
		t.Errorf("agents = %+v", f.Agents)
	}
}

func TestDevCarriesSpaces(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2", "--spaces.delta-threshold", "10")
	alice, bob := connect(t, d.public[0]+"?agent_id=alice"), connect(t, d.public[1]+"?agent_id=bob")
	alice.hear("agent.registered")
	bob.hear("agent.registered")
	alice.say(`{"type":"space.join","id":"j","space":"general"}`)
	if f := alice.hear("space.joined"); f.ID != "j" || len(f.Members) != 1 {
		t.Errorf("space.joined = %+v", f)
	}
	bob.say(`{"type":"space.join","id":"j","space":"general"}`)
	bob.hear("space.joined")
	if f := alice.hear("space.members"); f.Joined == nil || *f.Joined != "bob" {
		t.Errorf("space.members = %+v", f)
	}
	bob.say(`{"type":"space.publish","id":"p1","space":"general","data":{"from":"mallory","text":"hi","timestamp":1}}`)
	for _, a := range []*agent{alice, bob} {
		if f := a.hear("space.event"); string(f.Data) != `{"from":"bob","text":"hi","timestamp":1}` {
			t.Errorf("space.event = %s", f.Data)
		}
	}
	bob.say(`{"type":"space.publish","id":"p2","space":"general","data":{"text":"much longer than ten bytes","timestamp":1}}`)
	for f := alice.hear("space.event.delta"); f.Type == "space.event.delta"; {
		_, b, err := alice.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.DecodeAnswer(b, &f); err != nil {
			t.Fatal(err)
		}
	}
	alice.say(`{"type":"space.leave","id":"l","space":"general"}`)
	alice.hear("space.left")
	alice.say(`{"type":"space.list","id":"q"}`)
	if f := alice.hear("space.list"); len(f.Spaces) != 2 || f.Spaces[1].ID != "general" || f.Spaces[1].MemberCount != 1 {
		t.Errorf("space.list = %+v", f.Spaces)
	}
}

func TestSameIDTwiceIsToldAndClosedWith4009(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2")
	first := connect(t, d.public[0]+"?agent_id=alice")
	first.hear("agent.registered")
	go first.ReadMessage() // answers the probe
	second := connect(t, d.public[1]+"?agent_id=alice")
	if f := second.hear("error"); f.Code != "AGENT_EXISTS" {
		t.Errorf("error = %+v", f)
	}
	if _, _, err := second.ReadMessage(); !websocket.IsCloseError(err, 4009) {
		t.Errorf("newcomer ended with %v, want close 4009", err)
	}
}

func TestDevAnswersOperatorsAndDrains(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	a := connect(t, d.public[0]+"?agent_id=alice")
	a.hear("agent.registered")
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": "ready", "/metrics": "agora_ws_connections 1",
	} {
		if status, body := fetch(t, d.admin[0]+path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s = %d %.200s, want %q in it", path, status, body, want)
		}
	}
	public := strings.Replace(strings.TrimSuffix(d.public[0], "/ws"), "ws", "http", 1)
	for path, want := range map[string]struct {
		status int
		text   string
	}{"/metrics": {404, ""}, "/": {200, "a relay for AI agents"}, "/ws": {426, "a relay for AI agents"}, "/index.html": {404, ""}} {
		if status, body := fetch(t, public+path); status != want.status || !strings.Contains(body, want.text) {
			t.Errorf("%s on the public port = %d %s, want %d and %q", path, status, body, want.status, want.text)
		}
	}
	d.stop()
	a.hear("agent.reconnect")
	if _, _, err := a.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseServiceRestart) {
		t.Errorf("drained connection ended with %v, want close 1012", err)
	}
	d.end(t)
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: await.Long}
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestTokenMadeByAgoraTokenOpensTheDoor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	mint := func(args ...string) (lines []string) {
		var made, stderr output
		if status := run(t.Context(), append([]string{"token"}, args...), nil, &made, &stderr); status != 0 {
			t.Fatalf("agora token %v ended with %d: %s", args, status, &stderr)
		}
		return strings.Split(strings.TrimSpace(made.String()), "\n")
	}
	only := mint("jane", "--agents", "jane,jane/*", "--append", file)
	both := mint("joe")
	if len(only) != 1 || len(both) != 2 || !strings.HasPrefix(both[1], "joe sha256:") {
		t.Fatalf("printed %q with --append and %q without, want the token, and the line behind it only without", only, both)
	}
	token := only[0]
	if status := run(t.Context(), []string{"token", "jane", "--append", file}, nil, &output{}, &output{}); status == 0 {
		t.Error("a name that the file has is appended again")
	}
	d := startDev(t, "--auth", "file:"+file, "--log.level", "debug")
	a := connect(t, d.public[0]+"?agent_id=jane/1&token="+token)
	a.hear("agent.registered")
	other := connect(t, d.public[0]+"?agent_id=joe&token="+token)
	if f := other.hear("error"); f.Code != "FORBIDDEN" {
		t.Errorf("error = %+v, want FORBIDDEN", f)
	}
	if _, r, err := websocket.DefaultDialer.Dial(d.public[0]+"?agent_id=jane", nil); err == nil || r.StatusCode != 401 {
		t.Errorf("without a token: %v, want 401", err)
	}
	d.end(t, a, other)
	if strings.Contains(d.stderr.String(), token) {
		t.Error("the log shows the token")
	}
}
