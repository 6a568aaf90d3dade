package serve

import (
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/agora-relay/agora/internal/origintest"
)

// alone starts an edge as `agora dev` does, with every port.
func alone(t *testing.T, more ...string) *edgeServer {
	t.Helper()
	var o devRun
	flags := pflag.NewFlagSet("dev", pflag.ContinueOnError)
	o.Flags(flags)
	if err := flags.Parse(append([]string{
		"--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--p2p-addr", "127.0.0.1:0", "--admin.pprof",
		"--session.grace", "1h", "--session.timeout", "1h",
	}, more...)); err != nil {
		t.Fatal(err)
	}
	c, err := startCluster(t.Context(), &o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c.edges[0]
}

// listener is one port of an edge over HTTP: its address, and the patterns that are routed there.
type listener struct {
	about, at string
	patterns  []string
	closed    bool // no page may ask, whatever its origin
}

// listeners returns every port over HTTP, with its routes as the code has them.
func (e *edgeServer) listeners(t *testing.T) []listener {
	public := (*e.ports.public.handler.Load()).(*http.ServeMux)
	admin := (*e.ports.admin.handler.Load()).(*http.ServeMux)
	inner := append(origintest.Routes(t, e.operatorHandler().(*http.ServeMux)), origintest.Routes(t, profiles().(*http.ServeMux))...)
	return []listener{
		{"public", "http://" + e.ports.public.addr(), origintest.Routes(t, public), false},
		{"admin", "http://" + e.ports.admin.addr(), append(origintest.Routes(t, admin), inner...), true},
	}
}

// changes are the routes whose GET changes something. One that is missing here is refused to a person's browser over
// plain HTTP, see [web.Path].
var changes = []string{"/ws", "/a2a/events", "/a2a/ws"}

// attempts are what would do something at a route if it were let in, by method and pattern.
var attempts = map[string]origintest.Request{
	"GET /ws":                        {Target: "/ws?agent_id=carl", Headers: origintest.Handshake},
	"GET /a2a/ws":                    {Target: "/a2a/ws?agent=carl", Headers: origintest.Handshake},
	"GET /a2a/events":                {Target: "/a2a/events?agent=carl"},
	"HEAD /a2a/events":               {Target: "/a2a/events?agent=carl"},
	"POST /a2a":                      {Target: "/a2a", Body: `{"header":{"msg_id":"1","type":"notification","from":"carl","to":"bob"},"payload":{"action":"log","level":"info","message":"hi"}}`},
	"PUT /agents/{id}":               {Target: "/agents/carl", Body: `{"tools":[{"name":"read_file"}]}`},
	"PUT /agents/find":               {Target: "/agents/find", Body: `{}`},
	"DELETE /agents/{id}":            {Target: "/agents/dora"},
	"POST /agents/{id}/ask":          {Target: "/agents/bob/ask", Body: `{"hello":1}`},
	"POST /agents/{id}/tools/{tool}": {Target: "/agents/bob/tools/run", Body: `{}`},
	"POST /agents/{id}/handoff":      {Target: "/agents/bob/handoff", Body: `{"method":"GET","path":"/x"}`},
	"POST /register":                 {Target: "/register", Body: `{"agent_name":"carl","peer_id":"12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo"}`},
	"POST /v1/agent/kick":            {Target: "/v1/agent/kick?id=bob"},
	"POST /v1/agent/purge":           {Target: "/v1/agent/purge?id=bob"},
	"GET /debug/pprof/profile":       {Target: "/debug/pprof/profile?seconds=1"},
	"POST /debug/pprof/profile":      {Target: "/debug/pprof/profile?seconds=1"},
	"GET /debug/pprof/trace":         {Target: "/debug/pprof/trace?seconds=1"},
	"OPTIONS /a2a":                   {Target: "/a2a", Headers: []string{"Access-Control-Request-Method", "POST"}},
	"OPTIONS /agents/{id}":           {Target: "/agents/carl", Headers: []string{"Access-Control-Request-Method", "PUT"}},
	"OPTIONS /agents/{id}/ask":       {Target: "/agents/bob/ask", Headers: []string{"Access-Control-Request-Method", "POST"}},
	"OPTIONS /a2a/approvals/{id}":    {Target: "/a2a/approvals/x", Headers: []string{"Access-Control-Request-Method", "POST"}},
}

// requests returns what is asked at a route.
func requests(pattern string) []origintest.Request {
	all := origintest.Requests(pattern)
	for k, q := range all {
		_, path, named := strings.Cut(pattern, " ")
		if !named {
			path = pattern
		}
		if own, has := attempts[q.Method+" "+path]; has && own.Target != "" {
			own.Method = q.Method
			all[k] = own
		}
	}
	return all
}

// witness is an agent that is there, and notes all that it is sent.
type witness struct {
	*websocket.Conn
	said chan string
}

func watch(t *testing.T, e *edgeServer) *witness {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial("ws://"+e.ports.public.addr()+"/ws?agent_id=bob", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{c, make(chan string, 100)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_, b, err := c.ReadMessage()
			if err != nil {
				return
			}
			w.said <- string(b)
		}
	}()
	t.Cleanup(func() {
		c.Close()
		<-ended
	})
	<-w.said // the welcome
	return w
}

// next returns what the agent is sent next but for heartbeats, once the edge has answered it.
func (w *witness) next(t *testing.T) string {
	t.Helper()
	if err := w.WriteMessage(websocket.TextMessage, []byte(`{"type":"list"}`)); err != nil {
		t.Fatal(err)
	}
	for {
		if said := <-w.said; !strings.Contains(said, `"agent.heartbeat"`) {
			return said
		}
	}
}

func clients(t *testing.T) map[string]*http.Client {
	one, two := &http.Transport{}, &http.Transport{Protocols: new(http.Protocols)}
	two.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(one.CloseIdleConnections)
	t.Cleanup(two.CloseIdleConnections)
	return map[string]*http.Client{"HTTP/1.1": {Transport: one}, "HTTP/2": {Transport: two}}
}

// Every route of every listener over HTTP refuses what a page of others makes a browser send, whatever the method, and
// nothing has happened.
func TestNoPageOfOthersGetsThroughAtAnyRouteOfAnyListener(t *testing.T) {
	t.Parallel()
	e := alone(t)
	bob := watch(t, e)
	all := clients(t)
	for _, l := range e.listeners(t) {
		pages := origintest.Foreign
		if l.closed {
			pages = append(slices.Clone(pages), origintest.Welcome...)
		}
		for version, c := range all {
			if l.closed && version != "HTTP/1.1" {
				continue
			}
			for _, pattern := range l.patterns {
				for _, q := range requests(pattern) {
					if version != "HTTP/1.1" && len(q.Headers) > 2 {
						q.Headers = nil // HTTP/2 has no handshakes
					}
					for _, p := range pages {
						got, text := p.Ask(t, c, l.at, q)
						p.Refused(t, got, l.about+" "+version+" "+q.Method+" "+q.Target, text)
						if t.Failed() {
							return // what is let in may take its time
						}
					}
				}
			}
		}
	}
	if said := bob.next(t); !strings.Contains(said, `"agents"`) || strings.Contains(said, "carl") || strings.Contains(said, "find") || !strings.Contains(said, "bob") {
		t.Errorf("after all of that the agent that is there was sent %s, want a list that has it alone", said)
	}
}

// A GET that changes something does so for a browser only where that says that no other site's page has sent it; others
// are answered as a program is.
func TestNoGetOfABrowserChangesAnything(t *testing.T) {
	t.Parallel()
	e := alone(t)
	bob := watch(t, e)
	c := clients(t)["HTTP/1.1"]
	for _, l := range e.listeners(t) {
		for _, pattern := range l.patterns {
			for _, q := range requests(pattern) {
				if q.Method != "GET" && q.Method != "HEAD" || strings.HasPrefix(pattern, "/debug") {
					continue
				}
				for _, p := range origintest.Unsaid {
					got, text := p.Ask(t, c, l.at, q)
					may := !slices.Contains(changes, pattern) || q.Method == "HEAD" && pattern == "/ws" // which asks for no WebSocket
					if may == (got == http.StatusForbidden) {
						t.Errorf("%s %s %s: %s is answered %d %s; want it refused: %t", l.about, q.Method, q.Target, p.About, got, text, !may)
					}
				}
			}
		}
	}
	if said := bob.next(t); strings.Contains(said, "carl") {
		t.Errorf("a browser has bound an agent: %s", said)
	}
}

// What is refused to pages does something for whoever may ask: else nothing was shown.
func TestPagesOfThisMachineAndProgramsAreLetIn(t *testing.T) {
	t.Parallel()
	e := alone(t)
	watch(t, e)
	all := clients(t)
	for _, p := range append(slices.Clone(origintest.Welcome), origintest.Programs...) {
		for _, l := range e.listeners(t) {
			if l.closed && slices.Contains(p.Headers, "Origin") {
				continue
			}
			for _, pattern := range l.patterns {
				for _, q := range requests(pattern) {
					if strings.HasPrefix(pattern, "/debug") || strings.HasPrefix(q.Target, "/agents/bob/") || strings.Contains(pattern, "/v1/agent/") {
						continue // they take their time, or end bob
					}
					if got, text := p.Ask(t, all["HTTP/1.1"], l.at, q); got == http.StatusForbidden {
						t.Errorf("%s: %s asks %s %s: %d %s", l.about, p.About, q.Method, q.Target, got, text)
					}
				}
			}
		}
		for what, want := range map[string]int{"PUT /agents/{id}": 200, "POST /a2a": 202, "GET /a2a/events": 200, "GET /a2a/ws": 101, "GET /ws": 101} {
			q := attempts[what]
			q.Method, _, _ = strings.Cut(what, " ")
			q.Target = strings.ReplaceAll(q.Target, "carl", "eve")
			if got, text := p.Ask(t, all["HTTP/1.1"], "http://"+e.ports.public.addr(), q); got != want && got != 201 && got != 409 {
				t.Errorf("%s asks %s: %d %s, want %d", p.About, what, got, text, want)
			}
		}
	}
}

// A call of gRPC that says of which page it is has to be of one that may ask, as translators for browsers hand that on.
// Health is no exception.
func TestPagesOfOthersGetNoCallOfGRPCThrough(t *testing.T) {
	t.Parallel()
	e := alone(t)
	for _, c := range []struct {
		authority string
		metadata  []string
		want      codes.Code
	}{
		{"", nil, codes.OK},
		{"localhost:1", nil, codes.OK},
		{"", []string{"origin", "http://localhost:3000"}, codes.OK},
		{"", []string{"origin", "http://evil.example"}, codes.PermissionDenied},
		{"", []string{"origin", "null"}, codes.PermissionDenied},
		{"", []string{"sec-fetch-site", "cross-site"}, codes.PermissionDenied},
		{"", []string{"origin", "http://localhost:3000", "origin", "http://evil.example"}, codes.InvalidArgument},
		{"evil.example:1", []string{"origin", "http://evil.example:1"}, codes.PermissionDenied},
		{"evil.example:1", nil, codes.PermissionDenied},
		{"mac.local", nil, codes.PermissionDenied},
	} {
		func() {
			conn, err := grpc.NewClient(e.ports.grpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(c.authority))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx := metadata.AppendToOutgoingContext(t.Context(), c.metadata...)
			_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
			if grpcstatus.Code(err) != c.want {
				t.Errorf("a call of %q with %q: %v, want %v", c.authority, c.metadata, err, c.want)
			}
			err = conn.Invoke(ctx, "/aip.GatewayService/Nothing", &grpc_health_v1.HealthCheckRequest{}, &grpc_health_v1.HealthCheckResponse{})
			if refused := grpcstatus.Code(err) == codes.PermissionDenied || grpcstatus.Code(err) == codes.InvalidArgument; refused != (c.want != codes.OK) {
				t.Errorf("a call of a method that is not there of %q with %q: %v", c.authority, c.metadata, err)
			}
		}()
	}
}

// The tests here and of internal/p2phost try each listener that an edge has. Anyone who adds one adds it to them.
func TestEveryListenerIsTriedWithPages(t *testing.T) {
	var names []string
	for k := range reflect.TypeFor[places]().NumField() {
		names = append(names, reflect.TypeFor[places]().Field(k).Name)
	}
	if want := []string{"public", "admin", "grpc", "p2p"}; !slices.Equal(names, want) {
		t.Errorf("an edge listens at %q, and pages were tried at %q", names, want)
	}
}
