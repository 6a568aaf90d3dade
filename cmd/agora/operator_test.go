package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/edge"
	ops "github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/await"
)

// operate runs a verb of operators at an edge, and returns its output and exit status.
func (r *running) operate(args ...string) (out string, status int) {
	r.t.Helper()
	var stdout, stderr output
	status = run(context.Background(), append(args, "--admin", r.admin), strings.NewReader(""), &stdout, &stderr)
	return stdout.String() + stderr.String(), status
}

// ask runs a verb with --json, which must succeed.
func (r *running) ask(v any, args ...string) {
	r.t.Helper()
	out, status := r.operate(append(args, "--json")...)
	if status != 0 {
		r.t.Fatalf("agora %s ended with %d: %s", strings.Join(args, " "), status, out)
	}
	if err := json.Unmarshal([]byte(out), v); err != nil {
		r.t.Fatalf("agora %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// fateOf is what `agora why` says of the one message that it finds.
func (r *running) fateOf(args ...string) ops.Fate {
	r.t.Helper()
	var f ops.Fates
	r.ask(&f, append([]string{"why"}, args...)...)
	if len(f.Messages) != 1 {
		r.t.Fatalf("why %v found %d messages, want one: %+v", args, len(f.Messages), f)
	}
	return f.Messages[0]
}

func TestWhyTellsWhatBecameOfAMessageAtWhateverEdgeItIsAsked(t *testing.T) {
	t.Parallel()
	args := backends(t)
	one, two := launch(t, args...).ready(), launch(t, args...).ready()
	alice, bob := connect(t, one.public+"?agent_id=alice"), connect(t, two.public+"?agent_id=bob")
	alice.hear("agent.registered")
	name := bob.hear("agent.registered").Agent.ConnectionID
	bob.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4500, ""))
	await.True(t, "bob's session waits for it", func() bool { return agentAt(one, "bob").State == "grace" })
	alice.say(`{"type":"send","to":"bob","id":"order-17","n":1,"payload":{"a":1}}`)
	receipt := alice.hear("receipt")
	seq := fmt.Sprint(receipt.Seq)

	f := one.fateOf("order-17")
	if f.State != "waiting" || !strings.Contains(f.Why, name) || !strings.Contains(f.Why, "lost") {
		t.Errorf("bob is away: %s, %s", f.State, f.Why)
	}
	if f.From != "alice" || f.To != "bob" || f.Seq != receipt.Seq || f.Stored.Stream == "" || f.Stored.At.IsZero() || f.Given != nil {
		t.Errorf("fate %+v", f)
	}
	for _, id := range []string{seq, f.Session + "/1"} {
		if by := two.fateOf(id, "--to", "bob"); by.Seq != receipt.Seq {
			t.Errorf("why %s at the other edge = %+v", id, by)
		}
	}
	bob = connect(t, two.public+"?agent_id=bob")
	name = bob.hear("agent.registered").Agent.ConnectionID
	bob.hear("message")
	await.True(t, "it is written", func() bool { return one.fateOf(seq, "--to", "bob").State != "waiting" })
	bob.say(fmt.Sprintf(`{"type":"ack","seq":%s}`, seq))
	await.True(t, "it is acknowledged", func() bool { return one.fateOf(seq, "--to", "bob").State == "acknowledged" })
	f = one.fateOf(seq, "--to", "bob")
	if f.Given == nil || f.Given.Conn != name || f.Given.From.Before(f.Stored.At) || f.Given.To != nil {
		t.Errorf("delivered %+v, want to %s behind %s", f.Given, name, f.Stored.At)
	}
	bob.Close()
	await.True(t, "bob has left again", func() bool { return agentAt(one, "bob").State == "grace" })
	await.True(t, "history says to which connection", func() bool {
		f = one.fateOf(seq, "--to", "bob")
		return f.Given != nil && f.Given.To != nil
	})
	if f.Given.Conn != name || f.State != "acknowledged" {
		t.Errorf("behind the session: %s, delivered %+v, want %s", f.State, f.Given, name)
	}
	if out, status := one.operate("why", "nothing-of-the-kind"); status != exit.NotFound || !strings.Contains(out, "no such message") {
		t.Errorf("why of nothing = %d, %s", status, out)
	}
}

func agentAt(r *running, id string) (v ops.AgentView) {
	r.t.Helper()
	r.ask(&v, "inspect", "agent", id)
	return v
}

func TestKickEndsASessionAtAnotherEdge(t *testing.T) {
	t.Parallel()
	args := backends(t)
	one, two := launch(t, args...).ready(), launch(t, args...).ready()
	alice, bob := connect(t, one.public+"?agent_id=alice"), connect(t, two.public+"?agent_id=bob")
	alice.hear("agent.registered")
	bob.hear("agent.registered")
	bob.say(`{"type":"send","to":"alice","stream_id":"s","stream":true,"payload":{"a":1}}`)
	alice.hear("message")
	if out, status := one.operate("kick", "bob"); status != 0 {
		t.Fatalf("kick ended with %d: %s", status, out)
	}
	if f := alice.hear("error"); f.Code != "STREAM_ABORTED" || f.StreamID != "s" {
		t.Errorf("alice got %+v, want bob's stream aborted", f)
	}
	_, _, err := bob.ReadMessage()
	if !websocket.IsCloseError(err, 4010) {
		t.Errorf("bob's connection ended with %v, want close 4010", err)
	}
	if v := agentAt(two, "bob"); v.State != "away" {
		t.Errorf("bob is %s, want away", v.State)
	}
	await.True(t, "the end and its reason are in the history", func() bool {
		for _, e := range agentAt(one, "bob").History {
			if e.What == "left" && e.Why == edge.Kicked.String() {
				return true
			}
		}
		return false
	})
	connect(t, one.public+"?agent_id=bob").hear("agent.registered")
	if out, status := one.operate("kick", "nobody"); status != exit.NotFound {
		t.Errorf("kick of nobody = %d, %s", status, out)
	}
}

func TestKickEndsASessionThatHasNoConnection(t *testing.T) {
	t.Parallel()
	e := launch(t, backends(t)...).ready()
	bob := connect(t, e.public+"?agent_id=bob")
	bob.hear("agent.registered")
	bob.Close()
	await.True(t, "bob's session waits for it", func() bool { return agentAt(e, "bob").State == "grace" })
	if out, status := e.operate("kick", "bob"); status != 0 {
		t.Fatalf("kick ended with %d: %s", status, out)
	}
	if v := agentAt(e, "bob"); v.State != "away" || v.Session != "" {
		t.Errorf("bob is %s in session %q, want away", v.State, v.Session)
	}
}

func TestAPurgedMailboxIsToldToItsOwner(t *testing.T) {
	t.Parallel()
	e := launch(t, backends(t)...).ready()
	alice, bob := connect(t, e.public+"?agent_id=alice"), connect(t, e.public+"?agent_id=bob")
	alice.hear("agent.registered")
	bob.hear("agent.registered")
	for n := range 2 { // these it reads
		alice.say(fmt.Sprintf(`{"type":"send","to":"bob","id":"read%d","payload":{"n":%d}}`, n, n))
		alice.hear("receipt")
		bob.say(fmt.Sprintf(`{"type":"ack","seq":%d}`, bob.hear("message").Seq))
	}
	await.True(t, "bob has read them", func() bool { v := agentAt(e, "bob"); return v.Mailbox.Records == 2 && v.Mailbox.Unread == 0 })
	if out, status := e.operate("mailbox", "purge", "bob"); status != 0 || out != "bob has nothing unread: nothing was dropped\n" {
		t.Errorf("with nothing unread, purge ended with %d: %s", status, out)
	}
	bob.Close()
	await.True(t, "bob has left", func() bool { return agentAt(e, "bob").State == "grace" })
	for n := range 3 {
		alice.say(fmt.Sprintf(`{"type":"send","to":"bob","id":"m%d","payload":{"n":%d}}`, n, n))
		alice.hear("receipt")
	}
	if v := agentAt(e, "bob"); v.Mailbox.Unread != 3 {
		t.Errorf("%d records are unread, want 3", v.Mailbox.Unread)
	}
	var v struct {
		Unread int `json:"unread_records"`
	}
	if e.ask(&v, "mailbox", "purge", "bob"); v.Unread != 3 {
		t.Errorf("%d unread records dropped, want 3", v.Unread)
	}
	alice.say(`{"type":"send","to":"bob","id":"after","payload":{"n":3}}`)
	alice.hear("receipt")
	bob = connect(t, e.public+"?agent_id=bob")
	bob.hear("agent.registered")
	gap := bob.hear("gap")
	if m := bob.hear("message"); m.Seq <= gap.ToSeq || string(m.Payload) != `{"n":3}` {
		t.Errorf("behind gap %+v came %+v", gap, m)
	}
}

func TestInspectShowsSpacesAndEdges(t *testing.T) {
	t.Parallel()
	args := backends(t)
	one, two := launch(t, args...).ready(), launch(t, args...).ready()
	alice := connect(t, two.public+"?agent_id=alice")
	alice.hear("agent.registered")
	alice.say(`{"type":"space.join","id":"1","space":"lab"}`)
	alice.hear("space.joined")
	var s ops.SpaceView
	if one.ask(&s, "inspect", "space", "lab"); s.Count != 1 || len(s.Members) != 1 || s.Members[0].Agent != "alice" {
		t.Errorf("space = %+v", s)
	}
	var edges struct{ Edges []ops.EdgeView }
	one.ask(&edges, "inspect", "edge")
	sessions := int64(0)
	for _, e := range edges.Edges {
		if !e.Alive || e.Self == nil || e.Self.Ready != "yes" {
			t.Errorf("edge %+v", e)
			continue
		}
		sessions += e.Self.Sessions
	}
	if len(edges.Edges) != 2 || sessions != 1 {
		t.Errorf("%d edges with %d sessions, want 2 with 1", len(edges.Edges), sessions)
	}
	if _, status := one.operate("inspect", "edge", "nobody"); status != exit.NotFound {
		t.Errorf("inspect of no edge = %d", status)
	}
	if out, status := one.operate("inspect", "agent", "alice"); status != 0 || !strings.Contains(out, "online") {
		t.Errorf("inspect = %d, %s", status, out)
	}
}

func TestOperatorsNeedTheTokenWhereOthersCanAsk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(backends(t), "--admin.pprof")
	open, shut := launch(t, args...).ready(), launch(t, append(args, "--admin.token-file", path)...).ready()
	others := launch(t, append(args, "--admin-addr", "0.0.0.0:0")...).ready()
	for _, path := range []string{"/v1/edges", "/debug/pprof/"} {
		for _, c := range []struct {
			at     *running
			header []string
			want   int
		}{
			{open, nil, 200},
			{open, []string{"Origin", "http://evil.example"}, 403},
			{open, []string{"Sec-Fetch-Site", "cross-site"}, 403},
			{open, []string{"Sec-Fetch-Site", "none"}, 200}, // a person, by the address bar
			{open, []string{"Host", "evil.example"}, 403},
			{open, []string{"Host", "192.0.2.7"}, 403},
			{shut, nil, 401},
			{shut, []string{"Authorization", "Bearer second"}, 401},
			{shut, []string{"Authorization", "Bearer first"}, 200},
			{others, nil, 200}, // from this machine's loopback, wherever the port is bound to
			{others, []string{"Host", "evil.example"}, 403},
			{others, []string{"X-Forwarded-For", "127.0.0.1"}, 403},
		} {
			if got := get(t, c.at.admin+path, c.header); got != c.want {
				t.Errorf("GET %s with %v = %d, want %d", path, c.header, got, c.want)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if got := get(t, others.admin+path, nil); got != 200 {
			t.Errorf("GET %s = %d where others can ask, want 200", path, got)
		}
	}
	if err := os.WriteFile(path, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := get(t, shut.admin+"/v1/edges", []string{"Authorization", "Bearer second"}); got != 200 {
		t.Errorf("the new token = %d, want 200", got)
	}
	if _, status := shut.operate("inspect", "edge", "--admin.token-file", path); status != 0 {
		t.Errorf("the verb with the token = %d", status)
	}
	for _, c := range []struct {
		at     *running
		header []string
		want   int
	}{
		{open, nil, 404},
		{open, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{shut, nil, 401},
		{others, nil, 404},
		{others, []string{"Origin", "http://127.0.0.1"}, 403},
	} {
		if got := request(t, http.MethodPost, c.at.admin+"/v1/agent/kick?id=x", c.header); got != c.want {
			t.Errorf("kick of nobody with %v = %d, want %d", c.header, got, c.want)
		}
	}
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := get(t, shut.admin+"/v1/edges", []string{"Authorization", "Bearer "}); got != 503 {
		t.Errorf("no token where the file is empty = %d, want 503", got)
	}
}

func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	if got := get(t, launch(t, backends(t)...).ready().admin+"/debug/pprof/", nil); got != 404 {
		t.Errorf("GET /debug/pprof/ = %d, want 404", got)
	}
}

func get(t *testing.T, url string, header []string) (status int) {
	t.Helper()
	return request(t, http.MethodGet, url, header)
}

func request(t *testing.T, method, url string, header []string) (status int) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
		if header[0] == "Host" {
			r.Host = header[1]
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestAVerbThatFindsNoEdgeSaysHowToNameOne(t *testing.T) {
	t.Parallel()
	const none = "127.0.0.1:1" // nothing is there
	const advice = "say which edge to ask by --admin"
	if out, status := inProcess(t, []string{"AGORA_ADMIN_ADDR=" + none}, "inspect", "edge"); status != exit.Unavailable || !strings.Contains(out, advice) {
		t.Errorf("without --admin it ended with %d: %s", status, out)
	}
	if out, status := inProcess(t, nil, "inspect", "edge", "--admin", "http://"+none); status != exit.Unavailable || strings.Contains(out, advice) {
		t.Errorf("with --admin it ended with %d: %s", status, out)
	}
}
