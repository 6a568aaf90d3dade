package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/aip"
	wirep2p "github.com/agora-relay/agora/wire/p2p"
)

// echoSchema is that of the tool that every callee has.
const echoSchema = `{"type":"object","properties":{"n":{"type":"integer","maximum":5},"path":{"type":"string"}},"required":["n"],"additionalProperties":false}`

// toolCallees are the agents that have tools, by their dialect and how they are members. An AIP agent has none, and
// takes sessions.
var toolCallees = map[string]func(*toolSite, string){
	"ws agent": (*toolSite).websocket, "ws mcp join": (*toolSite).mcpJoin, "p2p sidecar": (*toolSite).sidecar, "iat downlink": (*toolSite).downlink, "iat socket": (*toolSite).socket,
	"iat posted": (*toolSite).posted, "aip toolbox": (*toolSite).toolbox, "aip agent": (*toolSite).sessions,
}

// calleesThatRun answer what may be called of them.
var calleesThatRun = []string{"ws mcp join", "p2p sidecar", "iat downlink", "aip toolbox"}

// toolVerbs are the ways to say a call, by a door and its verb. Each returns what was answered. Those of "boundVerbs"
// are said by one agent alone.
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
	"iat ws": func(s *toolSite, _, to, tool, arguments string) string {
		s.n++
		id := fmt.Sprint("m", s.n)
		s.sub.say(fmt.Sprintf(`{"header":{"msg_id":%q,"type":"request","from":"sub","to":%q},"metadata":{"deadline_ms":2000},"payload":{"action":"call_tool","tool_name":%q,"arguments":%s}}`, id, to, tool, arguments))
		return s.hears(s.sub, `"parent_id":"`+id+`"`)
	},
	"p2p handoff": func(s *toolSite, _, to, tool, arguments string) string {
		return s.peer.asks(s.edgePeer(), wirep2p.HandoffProtocol, `{"method":"POST","path":"/agents/`+to+`/tools/`+tool+`","input_data":`+arguments+`}`)
	},
	"p2p handoff spelt": func(s *toolSite, _, to, tool, arguments string) string {
		return s.peer.asks(s.edgePeer(), wirep2p.HandoffProtocol, `{"method":"PUT","path":"/agents/`+to+`/{x}/`+tool+`/","params":{"x":"tools"},"input_data":`+arguments+`}`)
	},
	"p2p circuit": func(s *toolSite, _, to, tool, arguments string) string {
		return s.peer.asks(s.derivedPeer(to), wirep2p.HandoffProtocol, `{"method":"POST","path":"/tools/`+tool+`","input_data":`+arguments+`}`)
	},
	"mcp send": func(s *toolSite, _, to, tool, arguments string) string {
		return s.coder("agora_send", map[string]any{"to": to, "payload": map[string]any{"action": "call_tool", "tool_name": tool, "arguments": json.RawMessage(arguments)}})
	},
	"mcp ask": func(s *toolSite, _, to, tool, arguments string) string {
		return s.coder("agora_ask", map[string]any{"to": to, "payload": map[string]any{"action": "call_tool", "tool_name": tool, "arguments": json.RawMessage(arguments)}})
	},
	"mcp --tools": func(s *toolSite, _, to, tool, arguments string) string {
		return s.coder("agora_call_tool", map[string]any{"agent": to, "tool": tool, "arguments": json.RawMessage(arguments)})
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

// boundVerbs begin the verbs that are said over a connection of its agent's own: by the one who was given tasks.
var boundVerbs = regexp.MustCompile(`^(ws|p2p|mcp|iat ws)\b`)

// TestNoVerbReachesAToolPastTheChecks says a call in every way to every callee that must not be made, and holds that it
// is refused, and that nothing runs.
func TestNoVerbReachesAToolPastTheChecks(t *testing.T) {
	t.Parallel()
	s := newToolSite(t)
	ids := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(toolCallees)) {
		ids[name] = strings.ReplaceAll(name, " ", "-")
		toolCallees[name](s, ids[name])
		await.True(t, name+" is there", func() bool {
			shown := s.get("/agents/" + ids[name])
			return strings.Contains(shown, `"echo"`) || name == "aip agent" && strings.Contains(shown, `"aip"`)
		})
		s.givesAll(ids[name])
	}
	for _, name := range slices.Sorted(maps.Keys(toolCallees)) {
		for _, verb := range slices.Sorted(maps.Keys(toolVerbs)) {
			for _, c := range []struct{ what, as, tool, arguments, codes string }{
				{"an unknown tool", "worker", "nope", `{"n":1}`, "NOT_FOUND NotFound 404"},
				{"arguments that do not fit", "worker", "echo", `{"n":99}`, "INVALID_REQUEST InvalidArgument 400"},
				{"a tool that the task does not allow", "worker", "echo", `{"n":1}`, "FORBIDDEN PermissionDenied 403"},
				{"a path outside of the workspace", "boss", "echo", `{"n":1,"path":"/etc/passwd"}`, "FORBIDDEN PermissionDenied 403"},
			} {
				if c.as == "boss" && boundVerbs.MatchString(verb) {
					continue // has no connection
				}
				if verb == "p2p circuit" && name == "p2p sidecar" {
					continue // a circuit to it continues to its own door
				}
				codes := strings.Fields(c.codes)
				if verb == "aip RouteAgentCalling" { // a session is no whole request
					codes = strings.Fields("INVALID_REQUEST InvalidArgument")
				}
				if name == "aip agent" { // which has no tools, and so none that a task allows
					codes = append(codes, strings.Fields("NOT_FOUND NotFound 404 FORBIDDEN PermissionDenied 403")...)
				}
				if name == "p2p sidecar" && c.tool == "nope" { // which tools a peer has it says itself
					codes = append(codes, strings.Fields("FORBIDDEN PermissionDenied 403")...)
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
	for _, name := range calleesThatRun {
		before := s.ran.Load()
		if answer := toolVerbs["rest tools"](s, "someone", ids[name], "echo", `{"n":1}`); s.ran.Load() != before+1 {
			t.Errorf("what may be called of %s is answered %s", name, answer)
		}
	}
}

// saidIn returns what a pattern finds in a file of the project, by its group.
func saidIn(t *testing.T, file, pattern string) (all []string) {
	t.Helper()
	b, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(b), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has nothing like %s", file, pattern)
	}
	return all
}

// TestEveryDialectAndDoorIsAmongThoseThatAreChecked holds that the test above has a callee of each dialect, as package
// wire names them, and a verb of each door that an edge opens.
func TestEveryDialectAndDoorIsAmongThoseThatAreChecked(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../wire/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	dialects := []string{"ws"} // that of an agent whose card names none
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`(?m)^\s*(?:const )?Dialect\s*=\s*"(\w+)"`).FindStringSubmatch(string(b)); m != nil {
			dialects = append(dialects, m[1])
		}
	}
	files, err = filepath.Glob("serve/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var doors []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Door\) name\(\) string\s*\{ return "(\w+)" \}`).FindAllStringSubmatch(string(b), -1) {
			doors = append(doors, m[1])
		}
	}
	if len(dialects) < 4 || len(doors) < 5 {
		t.Fatalf("only the dialects %q and the doors %q are found", dialects, doors)
	}
	of := func(all []string, first string) bool {
		return slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, first+" ") })
	}
	for _, dialect := range dialects {
		if !of(slices.Collect(maps.Keys(toolCallees)), dialect) {
			t.Errorf("no agent of the dialect %s is among the callees of which tools are tried", dialect)
		}
	}
	for _, door := range doors {
		if door == "http" {
			door = "rest"
		}
		if !of(slices.Collect(maps.Keys(toolVerbs)), door) {
			t.Errorf("no verb of the door %s is among those by which calls of tools are tried", door)
		}
	}
}

// TestEveryVerbThatReachesAnAgentIsAmongThoseThatAreChecked holds that the test above lists every frame, route,
// service, protocol and tool by which something is said to an agent.
func TestEveryVerbThatReachesAnAgentIsAmongThoseThatAreChecked(t *testing.T) {
	t.Parallel()
	covered := func(verb string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(toolVerbs)), func(v string) bool { return v == verb || strings.HasPrefix(v, verb+" ") })
	}
	never := []string{ // text, answers, and what hands nothing over
		"ws send_chunk", "ws send_end", "ws reply", "ws reply_chunk", "ws reply_end", "ws cancel", "ws card.get", "ws agents.find", "rest card",
		"iat events", "iat manifest", "iat tools", "iat approvals", "p2p card", "mcp who", "mcp inbox", "mcp reply", "mcp join", "mcp publish", "mcp readSpace", "mcp why",
	}
	var want []string
	for _, f := range wire.Schemas(wire.Limits{}) {
		schema, err := json.Marshal(f.Schema)
		if err != nil {
			t.Fatal(err)
		}
		if f.Client && strings.Contains(string(schema), `"to":`) {
			want = append(want, "ws "+f.Type)
		}
	}
	for _, route := range saidIn(t, "edge/rest/door.go", `"/agents/\{id\}/(\w+)[^"]*":`) {
		want = append(want, "rest "+route)
	}
	for _, route := range saidIn(t, "edge/iat/door.go", `"/a2a(/?\w*)[^"]*": +\{`) {
		want = append(want, "iat "+cmp.Or(strings.TrimPrefix(route, "/"), "post"))
	}
	for _, protocol := range saidIn(t, "edge/p2p/door.go", `SetStreamHandler\(wire\.(\w+)Protocol`) {
		want = append(want, "p2p "+strings.ToLower(protocol))
	}
	for _, tool := range saidIn(t, "mcp/host/server.go", `addTool\(h, s, (\w+)Tool,`) {
		want = append(want, "mcp "+tool)
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
	if len(want) < 30 {
		t.Fatalf("only %v are found", want)
	}
	for _, verb := range want {
		if !covered(verb) && !slices.Contains(never, verb) {
			t.Errorf("%s is not among the verbs by which calls of tools are tried", verb)
		}
	}
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
		if strings.HasPrefix(verb, "aip ") || verb == "p2p circuit" { // whose nodes and peers are there or not
			continue
		}
		if answer := toolVerbs[verb](s, "worker", "gone", "echo", `{"n":1}`); !strings.Contains(answer, "AGENT_OFFLINE") && !strings.Contains(answer, "is away") {
			t.Errorf("%s: answered %.200s, want AGENT_OFFLINE", verb, answer)
		}
		if answer := toolVerbs[verb](s, "worker", "nobody", "echo", `{"n":1}`); !strings.Contains(answer, "AGENT_NOT_FOUND") && !strings.Contains(answer, "does not exist") {
			t.Errorf("%s: answered %.200s, want AGENT_NOT_FOUND", verb, answer)
		}
	}
}
