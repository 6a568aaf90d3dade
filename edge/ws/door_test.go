package ws

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/origin"
	"github.com/agora-relay/agora/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const goodToken = "let-me-in"

// onlyGood lets one token in. What it lets in has no node behind it: the tests
// here say nothing that needs one.
func onlyGood(_ context.Context, c edge.Credentials) (*edge.Actor, error) {
	if c.Token != goodToken {
		return nil, agora.Errorf(agora.Unauthorized, "the token is not valid")
	}
	return new(edge.Actor), nil
}

// entrance is one that nobody has come through, with one good token.
func entrance() *edge.Entrance {
	return &edge.Entrance{Connections: admission.NewConnLimiter(admission.NewLiveLimits(admission.Limits{})), Shedder: admission.NewShedder(admission.ShedderConfig{}), Authenticate: onlyGood}
}

// crowded is an entrance that lets in so many connections at a time.
func crowded(connections int) *edge.Entrance {
	e := entrance()
	e.Shedder = admission.NewShedder(admission.ShedderConfig{Connections: connections})
	return e
}

// gated is an entrance that limits connections.
func gated(l admission.Limits) *edge.Entrance {
	e := entrance()
	e.Connections = admission.NewConnLimiter(admission.NewLiveLimits(l))
	return e
}

// serve starts a door behind a server and ends both with the test.
func serve(t testing.TB, cfg Config, n node) (*Door, *httptest.Server) {
	t.Helper()
	if n.admit == nil {
		n.admit = entrance().Admit
	}
	if cfg.Linger == 0 {
		cfg.Linger = await.Long
	}
	d := open(cfg, n)
	s := httptest.NewServer(d)
	t.Cleanup(func() {
		d.Close()
		s.Close()
		d.Wait()
	})
	return d, s
}

func address(s *httptest.Server) string {
	return "ws" + strings.TrimPrefix(s.URL, "http") + "/ws?token=" + goodToken
}

// client is a raw peer with deadlines.
type client struct {
	t testing.TB
	*websocket.Conn
}

func dial(t testing.TB, s *httptest.Server) *client {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(address(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(await.Long))
	return &client{t, c}
}

func (c *client) say(text string) {
	c.t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) hear() wire.Frame {
	c.t.Helper()
	_, b, err := c.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	var f wire.Frame
	if err := wire.DecodeAnswer(b, &f); err != nil {
		c.t.Fatalf("%s: %v", b, err)
	}
	return f
}

// hearError wants the next frame to be an error.
func (c *client) hearError(code agora.Code) wire.Frame {
	c.t.Helper()
	f := c.hear()
	if f.Type != "error" || f.Code != string(code) {
		c.t.Fatalf("got %s %s %q, want error %s", f.Type, f.Code, f.Message, code)
	}
	return f
}

// hearClose passes over frames until the connection is closed with a code.
func (c *client) hearClose(code int) {
	c.t.Helper()
	for {
		_, _, err := c.ReadMessage()
		if err == nil {
			continue
		}
		if !websocket.IsCloseError(err, code) {
			c.t.Fatalf("connection ended with %v, want close %d", err, code)
		}
		return
	}
}

func get(t *testing.T, s *httptest.Server, header http.Header, query string) *http.Response {
	t.Helper()
	c, r, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.URL, "http")+"/ws"+query, header)
	if r == nil {
		t.Fatal(err)
	}
	if c != nil {
		t.Cleanup(func() { c.Close() })
	}
	return r
}

func TestBadCredentialsAreRefusedBeforeTheUpgrade(t *testing.T) {
	d, s := serve(t, Config{}, node{})
	for _, c := range []struct {
		about, query, bearer string
		want                 int
	}{
		{"none", "", "", 401},
		{"bad in the URL", "?token=guess", "", 401},
		{"bad in the header", "", "Bearer guess", 401},
		{"bad header before a good URL", "?token=" + goodToken, "Bearer guess", 401},
		{"good in the URL", "?token=" + goodToken, "", 101},
		{"good in the header", "", "bearer  " + goodToken, 101},
	} {
		t.Run(c.about, func(t *testing.T) {
			h := http.Header{}
			if c.bearer != "" {
				h.Set("Authorization", c.bearer)
			}
			r := get(t, s, h, c.query)
			if r.StatusCode != c.want {
				t.Errorf("status = %d, want %d", r.StatusCode, c.want)
			}
			if c.want == 401 && r.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Error("401 does not say how to authenticate")
			}
		})
	}
	if n := d.Stats().Refused.Load(); n != 4 {
		t.Errorf("counted %d refusals, want 4", n)
	}
}

func TestOnlyPagesThatMayConnect(t *testing.T) {
	t.Parallel()
	listed := Config{Pages: origin.Policy{Listed: []string{"https://app.example.com"}}}
	for _, c := range []struct {
		about, origin, host string
		cfg                 Config
		want                int
	}{
		{"a program", "", "agora.example.com", Config{}, 101},
		{"same host", "http://agora.example.com", "agora.example.com", Config{}, 101},
		{"same host in other letters", "https://Agora.Example.com", "agora.example.com", Config{}, 101},
		{"another port", "http://agora.example.com:81", "agora.example.com", Config{}, 403},
		{"another host", "http://evil.example.com", "agora.example.com", Config{}, 403},
		{"no host", "null", "agora.example.com", Config{}, 403},
		{"listed", "https://app.example.com", "agora.example.com", listed, 101},
		{"listed with another scheme", "http://app.example.com", "agora.example.com", listed, 403},
		{"any", "http://evil.example.com", "agora.example.com", Config{Pages: origin.Policy{Listed: []string{"*"}}}, 101},
		{"this machine, not in development", "http://localhost:3000", "agora.example.com", Config{}, 403},
		{"this machine", "http://localhost:3000", "127.0.0.1:8080", Config{Pages: origin.Policy{Loopback: true}}, 101},
		{"this machine by address", "http://[::1]:3000", "127.0.0.1:8080", Config{Pages: origin.Policy{Loopback: true}}, 101},
		{"an address of the net", "http://192.168.1.7:8080", "192.168.1.7:8080", Config{Pages: origin.Policy{Loopback: true}}, 101},
		{"a name made to point here", "http://evil.example.com:8080", "evil.example.com:8080", Config{Pages: origin.Policy{Loopback: true}}, 403},
	} {
		t.Run(c.about, func(t *testing.T) {
			_, s := serve(t, c.cfg, node{})
			h := http.Header{"Host": {c.host}}
			if c.origin != "" {
				h.Set("Origin", c.origin)
			}
			if r := get(t, s, h, "?token="+goodToken); r.StatusCode != c.want {
				t.Errorf("status = %d, want %d", r.StatusCode, c.want)
			}
		})
	}
}

func TestClosedDoorSendsEverybodyAway(t *testing.T) {
	d, s := serve(t, Config{}, node{})
	c := dial(t, s)
	c.say(`{"type":"agent.heartbeat"}`)
	await.True(t, "the connection is there", func() bool { return d.Stats().FramesIn.Load() == 1 })
	d.Close()
	c.hearClose(frame.CloseRestart)
	d.Wait()
	if n := d.Stats().Connections.Load(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	if r := get(t, s, nil, "?token="+goodToken); r.StatusCode != 503 || r.Header.Get("Retry-After") != "1" {
		t.Errorf("newcomer got %d, Retry-After %q, want 503 and 1", r.StatusCode, r.Header.Get("Retry-After"))
	}
}

func TestWhoAsksForNoUpgradeIsToldWhatThisIs(t *testing.T) {
	_, s := serve(t, Config{}, node{})
	defer http.DefaultClient.CloseIdleConnections()
	for _, query := range []string{"", "?token=" + goodToken, "?token=bad"} {
		r, err := http.Get(s.URL + "/ws" + query)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 426 || r.Header.Get("Upgrade") != "websocket" || !strings.Contains(string(b), "an edge of Agora") {
			t.Errorf("GET /ws%s = %d, Upgrade %q, %s (%v); want 426 and what this is", query, r.StatusCode, r.Header.Get("Upgrade"), b, err)
		}
	}
	if r := get(t, s, nil, "?token=bad"); r.StatusCode != 401 {
		t.Errorf("a handshake with bad credentials = %d, want 401", r.StatusCode)
	}
}

func TestGreetingReadsTheURL(t *testing.T) {
	for _, c := range []struct{ about, query, fault string }{
		{"an id", "agent_id=Jane+Doe&last_seq=9007199254740991&receipts=stored,acked&resume_token=x", ""},
		{"an empty id", "agent_id=", "agent id"},
		{"an unprintable id", "agent_id=a%00", "agent id"},
		{"a position that JSON can't hold", "agent_id=a&last_seq=9007199254740992", "last_seq"},
		{"a position that is none", "agent_id=a&last_seq=-1", "last_seq"},
		{"an unknown tier", "agent_id=a&receipts=read", "receipts"},
	} {
		t.Run(c.about, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/ws?"+c.query, nil)
			h := greeting(r.URL.Query())
			if c.fault == "" && h.err != nil || c.fault != "" && (h.err == nil || !strings.Contains(h.err.Error(), c.fault)) {
				t.Fatalf("error = %v, want one about %q", h.err, c.fault)
			}
			if c.fault == "" && (h.Card.ID != "Jane Doe" || !h.HasLast || h.LastSeq != 1<<53-1 || h.Receipts != agora.Stored|agora.Acked || h.Resume != "x" || !h.Heartbeat) {
				t.Errorf("hello = %+v", h)
			}
		})
	}
	if greeting(nil) != nil {
		t.Error("a URL without agent_id binds")
	}
}
