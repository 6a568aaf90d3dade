package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/exit"
	ops "github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
)

// tells waits until stderr has every text, one behind the other.
func (r *cliRun) tells(texts ...string) {
	r.t.Helper()
	await.True(r.t, "it tells "+strings.Join(texts, ", then "), func() bool {
		rest := r.err.String()
		for _, text := range texts {
			at := strings.Index(rest, text)
			if at < 0 {
				return false
			}
			rest = rest[at+len(text):]
		}
		return true
	})
}

func TestListenersTellHowTheyStand(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	line := faultnet.NewProxy(t, strings.TrimSuffix(strings.TrimPrefix(c.cluster.URL(0), "ws://"), "/ws"))
	c.url = "ws://" + line.Addr()
	for _, args := range [][]string{{"listen", "alice"}, {"join", "lobby", "--as", "bob"}, {"listen", "carol", "--json"}} {
		id := args[len(args)-1]
		if args[0] == "listen" {
			id = args[1]
		}
		run := c.start(t.Context(), strings.NewReader(""), args...)
		run.tells("* connected as " + id + " to " + c.url + "/ws\n")
		line.Cut()
		run.tells("* connection lost: ", "; trying again\n", "* no connection yet: ", "; trying again\n")
		line.Mend()
		run.tells("* connected again as " + id + " to " + c.url + "/ws: nothing is missing\n")
		if err := ops.New(c.cluster.Node(0)).Kick(await.Context(t), agora.DefaultTenant, agora.AgentID(id)); err != nil {
			t.Fatal(err)
		}
		run.tells("* an operator has ended the session (kick): coming back in a new one\n", "* connected again as "+id, "in a new session\n")
	}
}

func TestAListenerSaysWhatBecameOfItsCredentials(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	c := &verbs{t: t, url: f.address}
	end := time.Now().Add(4 * time.Second)
	over := c.start(t.Context(), strings.NewReader(""), "listen", "joe", "--token", f.signed(t, "joe", "1", end), "--ca", f.certs.CA)
	jane := c.start(t.Context(), strings.NewReader(""), "listen", "jane", "--token", f.jane, "--ca", f.certs.CA)
	jane.tells("* connected as jane")
	if err := os.WriteFile(f.list, []byte("name jane\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	jane.tells("* connection lost: the edge closed the connection: these credentials are revoked", "; trying again\n",
		"agora: these credentials are revoked (UNAUTHORIZED): give a token that the edges take, with --token-file or AGORA_TOKEN\n")
	if r := jane.wait(); r.status != exit.Forbidden {
		t.Errorf("jane: %+v, want status %d", r, exit.Forbidden)
	}
	if r := over.wait(); r.status != exit.Forbidden || !strings.Contains(r.stderr, "UNAUTHORIZED") {
		t.Errorf("joe: %+v, want status %d, and that the token is over", r, exit.Forbidden)
	}
}

func TestARefusalSaysWhyAndWhichFlagHelps(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	plain := startDev(t)
	wss := strings.Replace(plain.public[0], "ws://", "wss://", 1)
	for _, tc := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"listen", "jane"}, exit.Forbidden, "agora: a token is required (UNAUTHORIZED): give a token that the edges take, with --token-file or AGORA_TOKEN\n"},
		{[]string{"send", "--to", "x", "x", "--token", "wrong"}, exit.Forbidden, "agora: the token is not valid (UNAUTHORIZED): give a token"},
		{[]string{"agents", "--token-file", file(t, "wrong")}, exit.Forbidden, "agora: the token is not valid (UNAUTHORIZED): --token-file must hold"},
		{[]string{"listen", "joe", "--token", f.jane}, exit.Forbidden, "(FORBIDDEN): be an agent that the credentials are for (ID)"},
		{[]string{"join", "lobby", "--as", "joe", "--token", f.jane}, exit.Forbidden, "(FORBIDDEN): be an agent that the credentials are for (--as)"},
		{[]string{"agents", "--url", strings.Replace(f.address, "wss://", "ws://", 1)}, exit.Error, "--url says where edges are: wss://"},
		{[]string{"agents", "--url", wss}, exit.Unavailable, "--url must begin with ws://"},
		{[]string{"agents", "--url", "ws://127.0.0.1:1"}, exit.Unavailable, "--url or AGORA_URL says where edges are"},
		{[]string{"agents", "--ca", ""}, exit.Unavailable, "--ca names the file of the CA"},
	} {
		args := append([]string{tc.args[0], "--url", f.address, "--ca", f.certs.CA}, tc.args[1:]...)
		if status, said := ran(t, args...); status != tc.status || !strings.Contains(said, tc.says) {
			t.Errorf("%q ended with %d, want %d, and %q: %s", tc.args, status, tc.status, tc.says, said)
		}
	}
}

// busyEdge is before an edge, and refuses the first handshakes, and the first answer to each question.
func busyEdge(t *testing.T, edge string, handshakes int64) string {
	t.Helper()
	var asked, listed atomic.Int64
	door := agoratest.Tamper(t, edge, func(b []byte) [][]byte {
		var f struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		}
		if json.Unmarshal(b, &f) == nil && (f.Type == "agents" || f.Type == "space.joined" || f.Type == "space.created") && listed.Add(1)%2 == 1 {
			return [][]byte{fmt.Appendf(nil, `{"type":"error","code":"UNAVAILABLE","message":"the log elects","request_id":%q,"retry_after_ms":20}`, f.ID)}
		}
		return [][]byte{b}
	})
	to, err := url.Parse("http://" + strings.TrimPrefix(door, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= handshakes {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "UNAVAILABLE: the log can't be reached", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestVerbsWaitOutAClusterThatIsBusy(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	edge := c.cluster.URL(0)
	for _, args := range [][]string{
		{"agents"}, {"space", "create", "lobby"}, {"publish", "lobby", "hello", "--as", "alice"},
		{"send", "--to", "alice", "hello"}, {"join", "lobby", "--count", "1"},
	} {
		c.url = busyEdge(t, edge, 1)
		r := c.run("hello\n", args...)
		if r.status != 0 || !strings.Contains(r.stderr, "the log can't be reached (UNAVAILABLE); trying again\n") {
			t.Errorf("%q: %+v, want it to wait and succeed", args, r)
		}
	}
	c.url = busyEdge(t, edge, 1<<40)
	if r := c.run("", "agents", "--timeout", "1500ms"); r.status != exit.Unavailable || !strings.HasSuffix(r.stderr, "agora: the log can't be reached (UNAVAILABLE)\n") {
		t.Errorf("while it lasts: %+v, want status %d when the time is up", r, exit.Unavailable)
	}
}

func TestAnAddressIsThatOfAPageOrOfAWebSocket(t *testing.T) {
	t.Parallel()
	got := access.URLs("http://a:1, https://b/,ws://c/ws,wss://d,e:1,[::1]:2/ws,::1,f")
	if want := []string{"ws://a:1", "wss://b/", "ws://c/ws", "wss://d", "ws://e:1", "ws://[::1]:2/ws", "::1", "f"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	c := newCLI(t)
	c.url = strings.Replace(c.cluster.URL(0), "ws://", "http://", 1)
	c.ok("", "agents")
	c.url = strings.TrimSuffix(c.url, "/ws")
	c.ok("", "bench", "oneshot", "--senders", "1", "--receivers", "1", "--warmup", "1ms", "--duration", "50ms")
}
