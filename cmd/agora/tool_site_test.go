package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	clientaip "github.com/agora-relay/agora/client/aip"
	clientiat "github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/agenttools"
	"github.com/agora-relay/agora/wire/aip"
)

// toolSite is a cluster with an agent of each dialect that has the tool echo, and counts how often it has run.
type toolSite struct {
	t    *testing.T
	dev  *dev
	http *http.Client
	grpc aip.GatewayServiceClient
	ran  atomic.Int64
	n    int

	// Each of those below was given a task by each callee, for which no tool may be called.
	worker *agent                              // on a WebSocket; a peer of libp2p speaks as it, too
	helper *agent                              // another one: they speak in turns, as too many errors end a connection
	sub    *agent                              // on a WebSocket of IAT
	coder  func(string, map[string]any) string // a model: it calls a tool of its own, and returns the result
	peer   door
}

func newToolSite(t *testing.T) *toolSite {
	t.Helper()
	s := &toolSite{t: t, dev: startDev(t), http: &http.Client{}}
	conn, err := grpc.NewClient(s.dev.grpc[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s.grpc = aip.NewGatewayServiceClient(conn)
	s.worker = connect(t, s.dev.public[0]+"?agent_id=worker")
	s.worker.awaits("agent.registered")
	s.helper = connect(t, s.dev.public[0]+"?agent_id=helper")
	s.helper.awaits("agent.registered")
	s.sub = connect(t, strings.TrimSuffix(s.dev.public[0], "/ws")+"/a2a/ws?agent=sub")
	v := &verbs{t: t, url: s.dev.public[0]}
	var names []string
	for i := range agenttools.MaxTools + 1 {
		names = append(names, fmt.Sprintf(`"tool-%d"`, i))
	}
	many := connect(t, s.dev.public[0])
	many.say(`{"type":"agent.register","id":"1","agent":{"id":"many","tools":[` + strings.Join(names, ",") + `]}}`)
	many.awaits("agent.registered")
	session, _ := v.startMCP("--as", "coder", "--tools")
	await.True(t, "the model is offered to call any tool", func() bool {
		all, err := session.ListTools(t.Context(), nil)
		return err == nil && slices.ContainsFunc(all.Tools, func(tool *mcp.Tool) bool { return tool.Name == "agora_call_tool" })
	})
	s.coder = func(tool string, arguments map[string]any) string {
		said := v.tool(session, tool, arguments)
		for advice, code := range map[string]string{
			"may not do that": "FORBIDDEN", "Correct what was given": "INVALID_REQUEST", "there is no tool": "NOT_FOUND",
			"may not call": "FORBIDDEN", "was not called": "INVALID_REQUEST", "has no tool": "NOT_FOUND", "is not there any more": "AGENT_OFFLINE AGENT_NOT_FOUND",
		} {
			if strings.Contains(said, advice) {
				said += " " + code
			}
		}
		return said
	}
	s.coder("agora_inbox", nil) // it is connected
	s.peer = door{t, newPeer(t)}
	if said := s.post("/register", fmt.Sprintf(`{"agent_name":"worker","peer_id":%q,"addrs":[]}`, s.peer.peer.ID())); !strings.Contains(said, `"bound":true`) {
		t.Fatalf("the peer is not the worker: %s", said)
	}
	s.post("/a2a", `{"header":{"msg_id":"boss","type":"request","from":"boss","to":"agora"},"payload":{"action":"register","agent":"boss","workspace_root":"/w"}}`)
	return s
}

// background runs something until the test is over.
func (s *toolSite) background(f func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	s.t.Cleanup(func() { stop(); <-done })
}

func (s *toolSite) websocket(id string) {
	a := connect(s.t, s.dev.public[0])
	a.say(`{"type":"agent.register","id":"1","agent":{"id":"` + id + `","tools":[{"name":"echo","schema":` + echoSchema + `}]}}`)
	a.awaits("agent.registered")
	go func() { // ends with the socket
		for {
			_, b, err := a.ReadMessage()
			if err != nil {
				return
			}
			if strings.Contains(string(b), `"type":"message"`) && !strings.Contains(string(b), `"execute"`) {
				s.ran.Add(1)
			}
		}
	}()
}

func (s *toolSite) mcpJoin(id string) {
	server := mcp.NewServer(&mcp.Implementation{Name: id, Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(echoSchema)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.ran.Add(1)
		return &mcp.CallToolResult{}, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	s.t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	s.background(func(ctx context.Context) {
		run(ctx, []string{"mcp", "join", "--as", id, "--url", h.URL, "--edges", s.dev.public[0]}, strings.NewReader(""), s.t.Output(), s.t.Output())
	})
}

func (s *toolSite) sidecar(id string) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/card" {
			io.WriteString(w, `{"name":"plain","skills":[{"name":"echo","path":"/echo","schema":`+echoSchema+`}]}`)
			return
		}
		s.ran.Add(1)
		io.WriteString(w, `{}`)
	}))
	s.t.Cleanup(h.Close)
	s.background(func(ctx context.Context) {
		run(ctx, []string{"sidecar", "--agent-url", h.URL, "--id", id, "--url", httpOf(s.dev.public[0]), "--p2p-addr", "/ip4/127.0.0.1/tcp/0", "--admin-addr", "127.0.0.1:0"}, strings.NewReader(""), s.t.Output(), s.t.Output())
	})
}

func (s *toolSite) downlink(id string) {
	a, err := clientiat.NewAgent(clientiat.Config{URLs: []string{httpOf(s.dev.public[0])}, Agent: id})
	if err != nil {
		s.t.Fatal(err)
	}
	a.OnTool("echo", "", echoSchema, func(context.Context, clientiat.Call) (any, error) { s.ran.Add(1); return nil, nil })
	s.background(func(ctx context.Context) { _ = a.Serve(ctx); _ = a.Close() })
}

func (s *toolSite) socket(id string) {
	a := connect(s.t, strings.TrimSuffix(s.dev.public[0], "/ws")+"/a2a/ws?agent="+id)
	a.say(`{"header":{"msg_id":"r","type":"request","from":"` + id + `","to":"agora"},"payload":{"action":"register","agent":"` + id + `","tools":[{"name":"echo","input_schema":` + echoSchema + `}]}}`)
	go func() { // ends with the socket
		for {
			_, b, err := a.ReadMessage()
			if err != nil {
				return
			}
			if strings.Contains(string(b), `"call_tool"`) {
				s.ran.Add(1)
			}
		}
	}()
}

// sessions is an agent of AIP: whatever is begun with it may be a call that nobody has checked.
func (s *toolSite) sessions(id string) {
	a, err := clientaip.NewAgent(clientaip.Config{ID: id, Gateways: []string{s.dev.grpc[0]}, Listen: "127.0.0.1:0"})
	if err != nil {
		s.t.Fatal(err)
	}
	a.Handle(func(context.Context, *clientaip.Session) error { s.ran.Add(1); return nil })
	s.background(func(ctx context.Context) { _ = a.Serve(ctx); _ = a.Close() })
}

func (s *toolSite) posted(id string) {
	s.post("/a2a", `{"header":{"msg_id":"r","type":"request","from":"`+id+`","to":"agora"},"payload":{"action":"register","agent":"`+id+`","tools":[{"name":"echo","input_schema":`+echoSchema+`}]}}`)
}

func (s *toolSite) toolbox(id string) {
	box, err := clientaip.NewToolbox(clientaip.Config{ID: id, Gateways: []string{s.dev.grpc[0]}, Listen: "127.0.0.1:0"})
	if err == nil {
		err = box.AddTool(clientaip.Tool{Name: "echo", Arguments: echoSchema}, func(context.Context, json.RawMessage) (any, error) { s.ran.Add(1); return "", nil })
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.background(func(ctx context.Context) { _ = box.Serve(ctx); _ = box.Close() })
}

// givesAll has a callee give the one who calls tools a task, for which none may be called.
func (s *toolSite) givesAll(callee string) {
	s.gives(callee, "worker")
	s.hears(s.worker, `"task-`+callee+`-worker"`)
	s.gives(callee, "helper")
	s.hears(s.helper, `"task-`+callee+`-helper"`)
	s.gives(callee, "sub")
	s.hears(s.sub, `"task-`+callee+`-sub"`)
	s.gives(callee, "coder")
	await.True(s.t, "the model hears of the task", func() bool {
		return strings.Contains(s.coder("agora_inbox", map[string]any{"wait_s": 5}), "task of "+callee)
	})
}

// gives has a callee give an agent a task for which no tool may be called.
func (s *toolSite) gives(callee, to string) {
	s.background(func(ctx context.Context) {
		body := fmt.Sprintf(`{"header":{"msg_id":"task-%s-%s","type":"request","from":%[1]q,"to":%[2]q},"payload":{"action":"execute","query":"task of %[1]s","allowed_tools":[]}}`, callee, to)
		r, err := http.NewRequestWithContext(ctx, "POST", httpOf(s.dev.public[0])+"/a2a", strings.NewReader(body))
		if err != nil {
			return
		}
		if resp, err := s.http.Do(r); err == nil { // nobody answers it
			resp.Body.Close()
		}
	})
}

// hears returns the next thing that an agent is told in which there is a text: a task is noted before it is stored.
func (s *toolSite) hears(a *agent, text string) string {
	for {
		_, b, err := a.ReadMessage()
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(string(b), text) {
			return string(b)
		}
	}
}

// edgePeer is the edge as a peer of libp2p.
func (s *toolSite) edgePeer() peer.AddrInfo {
	at, err := peer.AddrInfoFromString(s.dev.peers[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return *at
}

// derivedPeer is an agent of another dialect as a peer of libp2p, which is reached by a circuit that ends at the edge.
func (s *toolSite) derivedPeer(id string) peer.AddrInfo {
	s.t.Helper()
	var all []struct {
		Name      string   `json:"agent_name"`
		Addresses []string `json:"addresses"`
	}
	if err := json.Unmarshal([]byte(s.get("/peers")), &all); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range all {
		if p.Name != id || len(p.Addresses) == 0 {
			continue
		}
		at, err := peer.AddrInfoFromString(p.Addresses[0])
		if err != nil {
			s.t.Fatal(err)
		}
		return *at
	}
	s.t.Fatalf("%s is no peer", id)
	return peer.AddrInfo{}
}

// frame has the worker or the helper say a frame of an id, an addressee and a tool, and returns its answer.
func (s *toolSite) frame(format, to, tool string) string {
	s.n++
	id := fmt.Sprint("f", s.n)
	who := s.worker
	if s.n%2 == 0 {
		who = s.helper
	}
	who.say(fmt.Sprintf(format, id, to, tool))
	return s.hears(who, `"`+id+`"`)
}

func (s *toolSite) post(path, body string) string {
	return s.do("POST", path, body)
}

func (s *toolSite) get(path string) string { return s.do("GET", path, "") }

func (s *toolSite) do(method, path, body string) string {
	r, err := http.NewRequestWithContext(await.Context(s.t), method, httpOf(s.dev.public[0])+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}
