package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/origintest"
	"github.com/agora-relay/agora/wire/aip"
)

// rated is an edge at which nobody of a level may say more than three messages in an hour.
type rated struct {
	*edgeServer
	t     *testing.T
	level admission.Level
	next  int // tenant that nobody is of yet
}

// rateSettings are the settings of the rates, by the level that each limits.
var rateSettings = map[admission.Level]string{
	admission.OfAgent: "limits.rate", admission.OfPrincipal: "limits.principal.rate", admission.OfTenant: "limits.tenant.rate",
}

// ratedTenants are as many as an edge counts each for itself, but for that of whom nobody has given another.
const ratedTenants = admission.CountedTenants - 1

// atEachLevel runs a test with an edge for each level that has a rate.
func atEachLevel(t *testing.T, test func(*rated)) {
	t.Parallel()
	for _, level := range ratedLevels {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			test(rate(t, level))
		})
	}
}

// rate starts such an edge. Of each tenant tK there is a principal sK with ids of any name, whose token is its name.
func rate(t *testing.T, level admission.Level) *rated {
	t.Helper()
	setting := rateSettings[level]
	if setting == "" {
		t.Fatalf("which setting limits the rate at the level %s? add it to rateSettings", level)
	}
	var lines strings.Builder
	for k := range ratedTenants {
		sum := sha256.Sum256([]byte(fmt.Sprint("s", k)))
		fmt.Fprintf(&lines, "s%d sha256:%s agents=* tenant=t%[1]d\n", k, hex.EncodeToString(sum[:]))
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	e := alone(t, "--auth", "file:"+tokens, "--"+setting, "0.001", "--limits.burst", "3000", "--aip.dial-timeout", "50ms")
	return &rated{edgeServer: e, t: t, level: level}
}

// speaker returns a token of a tenant that has said nothing yet, and what reports whether something was too much of
// what it has said: at the level, and at no other.
func (e *rated) speaker() (token string, limited func() bool) {
	k := e.next
	if e.next++; k == ratedTenants {
		e.t.Fatal("there are too few tenants")
	}
	return fmt.Sprint("s", k), func() bool {
		stats := e.node.Tenants()[fmt.Sprint("t", k)]
		if stats == nil {
			return false
		}
		for level := range admission.Levels {
			if n := stats.Limited[level].Load(); level != e.level && n > 0 {
				e.t.Errorf("the level %s limits where only %s has a rate", level, e.level)
			}
		}
		return stats.Limited[e.level].Load() > 0
	}
}

// tooMany is how often a thing is said of which three are let in.
const tooMany = 4

// ask asks over HTTP, without credentials where there is no token, and returns the status; 0 where there is no answer.
func (e *rated) ask(token string, q origintest.Request) int {
	ctx, cancel := context.WithTimeout(e.t.Context(), await.Long)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.Method, "http://"+e.ports.public.addr()+q.Target, strings.NewReader(q.Body))
	if err != nil {
		e.t.Fatal(err)
	}
	for k := 0; k < len(q.Headers); k += 2 {
		r.Header.Set(q.Headers[k], q.Headers[k+1])
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0
	}
	defer a.Body.Close()
	if a.StatusCode == http.StatusSwitchingProtocols && strings.HasPrefix(q.Target, "/ws?") {
		_, _ = a.Body.Read(make([]byte, 1)) // the answer to a registration by the URL: until then nothing may have been counted
	}
	return a.StatusCode
}

// uncounted are the routes that ask nobody who it is, and so count for nobody.
var uncounted = []string{"/", "GET /{$}", "/a2a/"}

// counts are what is asked at a route to be counted, where that is another thing than what pages ask, by method and
// pattern.
var counts = map[string]origintest.Request{
	"POST /agents/{id}/ask":          {Target: "/agents/speaker/ask?as=speaker", Body: `{"hello":1}`},
	"POST /agents/{id}/tools/{tool}": {Target: "/agents/speaker/tools/run?as=speaker", Body: `{}`},
	"POST /agents/{id}/handoff":      {Target: "/agents/speaker/handoff?as=speaker", Body: `{"method":"GET","path":"/x"}`},
	"POST /agents/find":              {Target: "/agents/find", Body: `{}`},
	"POST /a2a/approvals/{id}":       {Target: "/a2a/approvals/x", Body: `{"approved":true}`},
}

// TestEveryRequestOverHTTPCounts asks at each route of the public port, as its code has them, by each method that it
// takes: who asks has said something then.
func TestEveryRequestOverHTTPCounts(t *testing.T) {
	atEachLevel(t, func(e *rated) {
		for _, pattern := range origintest.Routes(e.t, (*e.ports.public.handler.Load()).(*http.ServeMux)) {
			if slices.Contains(uncounted, pattern) {
				continue
			}
			for _, q := range requests(pattern) {
				if own, has := counts[q.Method+" "+pattern]; has {
					own.Method = q.Method
					q = own
				}
				if q.Method != http.MethodOptions {
					e.countsOverHTTP(pattern, q)
				}
			}
		}
	})
}

// countsOverHTTP wants a request at a route to count.
func (e *rated) countsOverHTTP(pattern string, q origintest.Request) {
	switch e.ask("", q) {
	case http.StatusUnauthorized:
	case http.StatusForbidden, http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUpgradeRequired: // it is answered so the one who asks
		return
	default:
		e.t.Errorf("%s %s is answered without credentials", q.Method, pattern)
		return
	}
	token, limited := e.speaker()
	status := 0
	for range tooMany {
		if limited() {
			e.t.Errorf("%s %s (%s) is too much before it was asked %d times", q.Method, pattern, q.Target, tooMany)
		}
		status = e.ask(token, q)
	}
	if pattern == "/ws" && status == http.StatusBadRequest { // it is no handshake, of which limits.handshakes counts each
		return
	}
	if !limited() {
		e.t.Errorf("%s %s (%s), answered %d: what is asked %d times counts for nothing", q.Method, pattern, q.Target, status, tooMany)
	}
}

// methodsSaid are the messages by which the methods of AIP are called.
var methodsSaid = map[string]proto.Message{
	"RegisterAgent":      &aip.AgentInfo{AgentId: "n", Address: "127.0.0.1:1"},
	"RegisterTool":       &aip.ToolBoxInfo{ToolboxId: "n", Address: "127.0.0.1:1"},
	"DeregisterNode":     &aip.DeregisterNodeRequest{NodeId: "n"},
	"GetNodes":           &aip.GetNodesRequest{},
	"Heartbeat":          &aip.HeartbeatRequest{SenderId: "n"},
	"UpdateNodeInfo":     &aip.UpdateNodeInfoRequest{NodeInfo: &aip.Peer{InfoType: &aip.Peer_AgentInfo{AgentInfo: &aip.AgentInfo{AgentId: "n", Address: "127.0.0.1:1"}}}},
	"SubscribeToUpdates": &aip.UpdateSubscriptionRequest{SubscriberId: "n"},
	"Unsubscribe":        &aip.UnsubscribeRequest{SubscriberId: "n"},
	"RouteToolCalling":   &aip.ToolRequest{SenderId: "n", ReceiverId: "nobody", ToolName: "t"},
	"CallTool":           &aip.ToolRequest{SenderId: "n", ReceiverId: "nobody", ToolName: "t"},
	"RouteAgentCalling":  &aip.AgentMessage{SenderId: "n", ReceiverId: "nobody", SessionId: "s", SessionStatus: aip.AgentMessage_START_QUEST},
	"CallAgent":          &aip.AgentMessage{SenderId: "n", ReceiverId: "nobody", SessionId: "s", SessionStatus: aip.AgentMessage_START_QUEST},
}

// TestEveryMethodOfAIPCounts calls each method of the services, as their code has them.
func TestEveryMethodOfAIPCounts(t *testing.T) {
	atEachLevel(t, func(e *rated) {
		conn, err := grpc.NewClient(e.ports.grpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			e.t.Fatal(err)
		}
		defer conn.Close()
		for _, service := range []grpc.ServiceDesc{aip.GatewayService_ServiceDesc, aip.AgentService_ServiceDesc, aip.ToolService_ServiceDesc} {
			var methods []string
			for _, m := range service.Methods {
				methods = append(methods, m.MethodName)
			}
			for _, s := range service.Streams {
				methods = append(methods, s.StreamName)
			}
			for _, m := range methods {
				in := methodsSaid[m]
				if in == nil {
					e.t.Errorf("nothing is known to be said to %s of %s", m, service.ServiceName)
					continue
				}
				token, limited := e.speaker()
				for range tooMany {
					if limited() {
						e.t.Errorf("%s of %s is too much before it was called %d times", m, service.ServiceName, tooMany)
					}
					e.calls(conn, token, "/"+service.ServiceName+"/"+m, in)
				}
				if !limited() {
					e.t.Errorf("%s of %s, called %d times, counts for nothing", m, service.ServiceName, tooMany)
				}
			}
		}
	})
}

// calls calls a method of AIP, and returns when that is answered.
func (e *rated) calls(conn *grpc.ClientConn, token, method string, in proto.Message) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(e.t.Context(), "authorization", "Bearer "+token), await.Long)
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err == nil {
		err = errors.Join(s.SendMsg(in), s.CloseSend())
	}
	if err != nil {
		e.t.Fatal(err)
	}
	_, _ = s.Header() // how it is answered is nothing to these tests
}

// said is what an agent says that is registered and in the space "room", by the types of its frames.
var said = map[string]string{
	"register":            `{"type":"register","id":"speaker"}`,
	"agent.register":      `{"type":"agent.register","agent":{"id":"speaker"}}`,
	"agent.heartbeat":     `{"type":"agent.heartbeat"}`,
	"agent.refresh":       `{"type":"agent.refresh","token":"x"}`,
	"list":                `{"type":"list"}`,
	"agents.find":         `{"type":"agents.find","skill":"x"}`,
	"card.get":            `{"type":"card.get","id":"%d","to":"nobody"}`,
	"send":                `{"type":"send","to":"speaker","payload":{"n":%d}}`,
	"send_chunk":          `{"type":"send_chunk","to":"speaker","stream_id":"s","chunk":"%d"}`,
	"send_end":            `{"type":"send_end","to":"speaker","stream_id":"s%d"}`,
	"reply":               `{"type":"reply","to":"speaker","payload":{"n":%d}}`,
	"reply_chunk":         `{"type":"reply_chunk","to":"speaker","stream_id":"s","chunk":"%d"}`,
	"reply_end":           `{"type":"reply_end","to":"speaker","stream_id":"s%d"}`,
	"cancel":              `{"type":"cancel","to":"speaker","stream_id":"s"}`,
	"ack":                 `{"type":"ack","seq":0}`,
	"space.list":          `{"type":"space.list"}`,
	"space.join":          `{"type":"space.join","space":"room"}`,
	"space.leave":         `{"type":"space.leave","space":"room"}`,
	"space.create":        `{"type":"space.create","space":"room%d"}`,
	"space.publish":       `{"type":"space.publish","space":"room","data":{"n":%d}}`,
	"space.publish.delta": `{"type":"space.publish.delta","space":"room","event_id":"e","data":{"text":"%d"}}`,
	"space.publish.done":  `{"type":"space.publish.done","space":"room","event_id":"e"}`,
	"space.event.cancel":  `{"type":"space.event.cancel","space":"room","event_id":"e"}`,
	"call_tool":           `{"type":"call_tool","id":"%d","to":"speaker","tool_name":"t","arguments":{}}`,
	"handoff":             `{"type":"handoff","id":"%d","to":"speaker","method":"GET","path":"/x"}`,
}

// TestEveryFrameOfAnAgentCounts says each frame that agents may send, by the word of the edge's own description, until
// the agent may say nothing more.
func TestEveryFrameOfAnAgentCounts(t *testing.T) {
	atEachLevel(t, func(e *rated) {
		for _, kind := range e.clientFrames() {
			frame := said[kind]
			if frame == "" {
				e.t.Errorf("nothing is known to be said by %s", kind)
				continue
			}
			token, limited := e.speaker()
			c, _, err := websocket.DefaultDialer.Dial("ws://"+e.ports.public.addr()+"/ws?agent_id=speaker", http.Header{"Authorization": {"Bearer " + token}}) // which counts
			if err != nil {
				e.t.Fatal(err)
			}
			e.say(c, `{"type":"space.join","space":"room"}`)
			if strings.Contains(frame, "event_id") {
				e.say(c, `{"type":"space.publish","id":"e","space":"room","data":{"text":"a"},"stream":true}`)
			}
			for n := range tooMany {
				if strings.Contains(frame, "%d") {
					e.say(c, fmt.Sprintf(frame, n))
				} else {
					e.say(c, frame)
				}
			}
			await.True(e.t, kind+", said four times, counts", limited)
			c.Close()
		}
	})
}

func (e *rated) say(c *websocket.Conn, frame string) {
	e.t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		e.t.Fatal(err)
	}
}

// read reads what the edge says of itself at a path, in JSON.
func (e *rated) read(path string, doc any) {
	e.t.Helper()
	token, _ := e.speaker()
	r, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, "http://"+e.ports.public.addr()+path, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer a.Body.Close()
	if err := json.NewDecoder(a.Body).Decode(doc); err != nil {
		e.t.Fatal(err)
	}
}

// clientFrames returns the types of the frames that agents may send.
func (e *rated) clientFrames() (types []string) {
	e.t.Helper()
	var doc struct {
		Operations map[string]struct {
			Messages []struct {
				Ref string `json:"$ref"`
			}
		}
	}
	e.read("/asyncapi.json", &doc)
	for _, m := range doc.Operations["fromClient"].Messages {
		name := strings.TrimSuffix(m.Ref[strings.LastIndex(m.Ref, "/")+1:], "-fromClient")
		types = append(types, strings.ReplaceAll(name, "-", "."))
	}
	if len(types) < 20 {
		e.t.Fatalf("agents may send %q", types)
	}
	return types
}
