package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	clientaip "github.com/agora-relay/agora/client/aip"
	clientiat "github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/aip"
)

// echoSchema is that of the tool that every callee has.
const echoSchema = `{"type":"object","properties":{"n":{"type":"integer","maximum":5},"path":{"type":"string"}},"required":["n"],"additionalProperties":false}`

// toolSite is a cluster with an agent of each dialect that has the tool echo, and counts how often it has run.
type toolSite struct {
	t      *testing.T
	dev    *dev
	http   *http.Client
	grpc   aip.GatewayServiceClient
	worker *agent // was given a task by each callee, for which no tool may be called
	ran    atomic.Int64
	n      int
}

// callees are the agents that have tools, by how they are members.
var toolCallees = map[string]func(*toolSite, string){
	"websocket": (*toolSite).websocket, "mcp join": (*toolSite).mcpJoin, "sidecar": (*toolSite).sidecar, "iat downlink": (*toolSite).downlink, "iat posted": (*toolSite).posted, "aip toolbox": (*toolSite).toolbox,
}

// toolVerbs are the ways to say a call, by a verb and its door. Each returns what was answered. Those of a frame are said by the worker alone.
var toolVerbs = map[string]func(s *toolSite, as, to, tool, arguments string) string{
	"ws call_tool": func(s *toolSite, _, to, tool, arguments string) string {
		return s.frame(`{"type":"call_tool","id":%q,"to":%q,"tool_name":%q,"arguments":`+arguments+`}`, to, tool)
	},
	"ws send": func(s *toolSite, _, to, tool, arguments string) string {
		return s.frame(`{"type":"send","id":%q,"to":%q,"payload":{"action":"call_tool","tool_name":%q,"arguments":`+arguments+`}}`, to, tool)
	},
	"ws send handoff": func(s *toolSite, _, to, tool, arguments string) string {
		return s.frame(`{"type":"send","id":%q,"to":%q,"payload":{"action":"handoff","method":"POST","path":"/tools/`+"%s"+`","input_data":`+arguments+`}}`, to, tool)
	},
	"ws send escaped": func(s *toolSite, _, to, tool, arguments string) string {
		return s.frame(`{"type":"send","id":%q,"to":%q,"request_id":"r","payload": {"arguments":`+arguments+`,"tool_name":%q,"\u0061ction":"call\u005ftool"}}`, to, tool)
	},
	"ws handoff": func(s *toolSite, _, to, tool, arguments string) string {
		return s.frame(`{"type":"handoff","id":%q,"to":%q,"method":"post","path":"//%%74ools/`+"%s"+`/","input_data":`+arguments+`}`, to, tool)
	},
	"rest tools": func(s *toolSite, as, to, tool, arguments string) string {
		return s.post("/agents/"+to+"/tools/"+tool+"?as="+as, arguments)
	},
	"rest ask": func(s *toolSite, as, to, tool, arguments string) string {
		return s.post("/agents/"+to+"/ask?as="+as, `{"action":"call_tool","tool_name":"`+tool+`","arguments":`+arguments+`}`)
	},
	"rest ask handoff": func(s *toolSite, as, to, tool, arguments string) string {
		return s.post("/agents/"+to+"/ask?as="+as, `{"action":"handoff","method":"GET","path":"/{t}/`+tool+`","params":{"t":"tools"},"input_data":`+arguments+`}`)
	},
	"rest handoff": func(s *toolSite, as, to, tool, arguments string) string {
		return s.post("/agents/"+to+"/handoff?as="+as, `{"method":"POST","path":"/tools/`+tool+`","input_data":`+arguments+`}`)
	},
	"rest handoff spelt": func(s *toolSite, as, to, tool, arguments string) string {
		return s.post("/agents/"+to+"/handoff?as="+as, `{"method":"post","path":"//x/../Tools%2F`+tool+`","params":`+arguments+`}`)
	},
	"iat post": func(s *toolSite, as, to, tool, arguments string) string {
		s.n++
		return s.post("/a2a", fmt.Sprintf(`{"header":{"msg_id":"m%d","type":"request","from":%q,"to":%q},"metadata":{"deadline_ms":2000},"payload":{"action":"call_tool","tool_name":%q,"arguments":%s}}`, s.n, as, to, tool, arguments))
	},
	"aip RouteToolCalling": func(s *toolSite, as, to, tool, arguments string) string {
		out, err := s.grpc.RouteToolCalling(s.t.Context(), &aip.ToolRequest{SenderId: as, ReceiverId: to, SessionId: "s", ToolName: tool, Arguments: arguments})
		return fmt.Sprint(out, err)
	},
	"aip RouteAgentCalling": func(s *toolSite, as, to, tool, arguments string) string {
		s.n++
		c, err := s.grpc.RouteAgentCalling(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		text := `{"action":"call_tool","tool_name":"` + tool + `","arguments":` + arguments + `}`
		_ = c.Send(&aip.AgentMessage{SenderId: as, ReceiverId: to, SessionId: fmt.Sprint("s", s.n), Content: []*aip.ContentItem{{Data: &aip.ContentItem_Text{Text: text}}}})
		_, err = c.Recv()
		return fmt.Sprint(err)
	},
}

// TestNoVerbReachesAToolPastTheChecks says a call in every way to every callee that must not be made, and holds that it is refused, and that nothing runs.
func TestNoVerbReachesAToolPastTheChecks(t *testing.T) {
	t.Parallel()
	s := newToolSite(t)
	ids := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(toolCallees)) {
		ids[name] = strings.ReplaceAll(name, " ", "-")
		toolCallees[name](s, ids[name])
		await.True(t, name+" is there", func() bool { return strings.Contains(s.get("/agents/"+ids[name]), `"echo"`) })
		s.gives(ids[name])
	}
	for _, name := range slices.Sorted(maps.Keys(toolCallees)) {
		for _, verb := range slices.Sorted(maps.Keys(toolVerbs)) {
			for _, c := range []struct{ what, as, tool, arguments, codes string }{
				{"an unknown tool", "worker", "nope", `{"n":1}`, "NOT_FOUND NotFound 404"},
				{"arguments that do not fit", "worker", "echo", `{"n":99}`, "INVALID_REQUEST InvalidArgument 400"},
				{"a tool that the task does not allow", "worker", "echo", `{"n":1}`, "FORBIDDEN PermissionDenied 403"},
				{"a path outside of the workspace", "boss", "echo", `{"n":1,"path":"/etc/passwd"}`, "FORBIDDEN PermissionDenied 403"},
			} {
				if c.as == "boss" && strings.HasPrefix(verb, "ws ") {
					continue // has no socket
				}
				codes := strings.Fields(c.codes)
				if verb == "aip RouteAgentCalling" { // a session is no whole request
					codes = strings.Fields("INVALID_REQUEST InvalidArgument")
				}
				if name == "sidecar" && c.tool == "nope" { // which tools a peer has it says itself
					codes = append(codes, strings.Fields("FORBIDDEN PermissionDenied")...)
				}
				answer := toolVerbs[verb](s, c.as, ids[name], c.tool, c.arguments)
				if !slices.ContainsFunc(codes, func(code string) bool { return strings.Contains(answer, code) }) {
					t.Errorf("%s, by %s to %s: answered %.200s, want one of %s", c.what, verb, name, answer, codes)
				}
			}
		}
	}
	if n := s.ran.Load(); n > 0 {
		t.Errorf("%d calls have reached a tool", n)
	}
	for _, name := range []string{"mcp join", "sidecar", "iat downlink", "aip toolbox"} {
		before := s.ran.Load()
		if answer := toolVerbs["rest tools"](s, "someone", ids[name], "echo", `{"n":1}`); s.ran.Load() != before+1 {
			t.Errorf("what may be called of %s is answered %s", name, answer)
		}
	}
}

// TestEveryVerbThatReachesAnAgentIsAmongThoseThatAreChecked holds that the test above lists every frame, route and service by which something is said to an agent.
func TestEveryVerbThatReachesAnAgentIsAmongThoseThatAreChecked(t *testing.T) {
	t.Parallel()
	covered := func(verb string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(toolVerbs)), func(v string) bool { return v == verb || strings.HasPrefix(v, verb+" ") })
	}
	never := []string{"ws send_chunk", "ws send_end", "ws reply", "ws reply_chunk", "ws reply_end", "ws cancel", "ws card.get", "ws agents.find", "rest card"} // text, answers, and what hands nothing over
	want := []string{"iat post"}
	for _, f := range wire.Schemas(wire.Limits{}) {
		schema, err := json.Marshal(f.Schema)
		if err != nil {
			t.Fatal(err)
		}
		if f.Client && strings.Contains(string(schema), `"to":`) {
			want = append(want, "ws "+f.Type)
		}
	}
	routes, err := os.ReadFile("../../edge/rest/door.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"/agents/\{id\}/(\w+)[^"]*":`).FindAllStringSubmatch(string(routes), -1) {
		want = append(want, "rest "+m[1])
	}
	for _, m := range aip.GatewayService_ServiceDesc.Methods {
		if strings.HasPrefix(m.MethodName, "Route") {
			want = append(want, "aip "+m.MethodName)
		}
	}
	for _, m := range aip.GatewayService_ServiceDesc.Streams {
		if strings.HasPrefix(m.StreamName, "Route") {
			want = append(want, "aip "+m.StreamName)
		}
	}
	if len(want) < 12 {
		t.Fatalf("only %v are found", want)
	}
	for _, verb := range want {
		if !covered(verb) && !slices.Contains(never, verb) {
			t.Errorf("%s is not among the verbs by which calls of tools are tried", verb)
		}
	}
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

// gives has a callee give the worker a task for which no tool may be called.
func (s *toolSite) gives(callee string) {
	s.background(func(ctx context.Context) {
		body := fmt.Sprintf(`{"header":{"msg_id":"task-%s","type":"request","from":%q,"to":"worker"},"payload":{"action":"execute","query":"q","allowed_tools":[]}}`, callee, callee)
		r, err := http.NewRequestWithContext(ctx, "POST", httpOf(s.dev.public[0])+"/a2a", strings.NewReader(body))
		if err != nil {
			return
		}
		if resp, err := s.http.Do(r); err == nil { // nobody answers it
			resp.Body.Close()
		}
	})
	for said := ""; !strings.Contains(said, `"task-`+callee+`"`); { // it is noted before it is stored
		_, b, err := s.worker.ReadMessage()
		if err != nil {
			s.t.Fatal(err)
		}
		said = string(b)
	}
}

// frame has the worker say a frame of an id, an addressee and a tool, and returns its answer.
func (s *toolSite) frame(format, to, tool string) string {
	s.n++
	id := fmt.Sprint("f", s.n)
	s.worker.say(fmt.Sprintf(format, id, to, tool))
	for {
		_, b, err := s.worker.ReadMessage()
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(string(b), `"`+id+`"`) {
			return string(b)
		}
	}
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

// What is stored for an agent that is away would be taken when it is back, whatever tools it has then.
func TestNoCallOfAToolWaitsForAnAgentThatIsAway(t *testing.T) {
	t.Parallel()
	s := newToolSite(t)
	a := connect(t, s.dev.public[0])
	a.say(`{"type":"agent.register","id":"1","agent":{"id":"gone","tools":[{"name":"echo","schema":` + echoSchema + `}]}}`)
	a.awaits("agent.registered")
	if err := a.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")); err != nil {
		t.Fatal(err)
	}
	await.True(t, "it is away", func() bool { return strings.Contains(s.get("/agents/gone"), "AGENT_NOT_FOUND") })
	for _, verb := range slices.Sorted(maps.Keys(toolVerbs)) {
		if strings.HasPrefix(verb, "aip ") { // whose nodes are there or not
			continue
		}
		if answer := toolVerbs[verb](s, "worker", "gone", "echo", `{"n":1}`); !strings.Contains(answer, "AGENT_OFFLINE") {
			t.Errorf("%s: answered %.200s, want AGENT_OFFLINE", verb, answer)
		}
		if answer := toolVerbs[verb](s, "worker", "nobody", "echo", `{"n":1}`); !strings.Contains(answer, "AGENT_NOT_FOUND") {
			t.Errorf("%s: answered %.200s, want AGENT_NOT_FOUND", verb, answer)
		}
	}
}
