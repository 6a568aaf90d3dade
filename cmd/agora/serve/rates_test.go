package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/origintest"
	"github.com/agora-relay/agora/wire/aip"
)

// rated is an edge whose tenants may say three messages each, in an hour.
type rated struct {
	*edgeServer
	t    *testing.T
	next int // tenant that nobody is of yet
}

const ratedTenants = 120

// rate starts such an edge. Of each tenant tK there are a principal sK with ids of any name and a principal pK, whose tokens are their names.
func rate(t *testing.T) *rated {
	t.Helper()
	var lines strings.Builder
	for k := range ratedTenants {
		for _, name := range []string{"s", "p"} {
			sum := sha256.Sum256([]byte(fmt.Sprint(name, k)))
			fmt.Fprintf(&lines, "%s%d sha256:%s agents=* tenant=t%d\n", name, k, hex.EncodeToString(sum[:]), k)
		}
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var o devRun
	flags := pflag.NewFlagSet("dev", pflag.ContinueOnError)
	o.Flags(flags)
	if err := flags.Parse([]string{
		"--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--p2p-addr", "127.0.0.1:0",
		"--auth", "file:" + tokens, "--limits.tenant.rate", "0.001", "--limits.burst", "3000", "--aip.dial-timeout", "50ms",
	}); err != nil {
		t.Fatal(err)
	}
	c, err := startCluster(t.Context(), &o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return &rated{edgeServer: c.edges[0], t: t}
}

// speaker returns a token of a tenant that has said nothing yet, and what reports whether the tenant may say nothing more: it asks as another principal.
func (e *rated) speaker() (token string, spent func() bool) {
	k := e.next
	if e.next++; k == ratedTenants {
		e.t.Fatal("there are too few tenants")
	}
	return fmt.Sprint("s", k), func() bool {
		status := e.ask(fmt.Sprint("p", k), origintest.Request{Method: http.MethodGet, Target: "/agents"})
		return status == http.StatusTooManyRequests
	}
}

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

// counts are what is asked at a route to be counted, where that is another thing than what pages ask, by method and pattern.
var counts = map[string]origintest.Request{
	"POST /agents/{id}/ask":          {Target: "/agents/speaker/ask?from=speaker", Body: `{"hello":1}`},
	"POST /agents/{id}/tools/{tool}": {Target: "/agents/speaker/tools/run?from=speaker", Body: `{}`},
	"POST /agents/{id}/handoff":      {Target: "/agents/speaker/handoff?from=speaker", Body: `{"method":"GET","path":"/x"}`},
	"POST /agents/find":              {Target: "/agents/find", Body: `{}`},
	"POST /a2a/approvals/{id}":       {Target: "/a2a/approvals/x", Body: `{"approved":true}`},
}

// TestEveryRequestOverHTTPCounts asks at each route of the public port, as its code has them, by each method that it takes: who asks has said something then.
func TestEveryRequestOverHTTPCounts(t *testing.T) {
	t.Parallel()
	e := rate(t)
	if _, spent := e.speaker(); spent() {
		t.Fatal("a tenant that has said nothing may say nothing")
	}
	for _, pattern := range origintest.Routes(t, (*e.ports.public.handler.Load()).(*http.ServeMux)) {
		if slices.Contains(uncounted, pattern) {
			continue
		}
		for _, q := range requests(pattern) {
			if own, has := counts[q.Method+" "+pattern]; has {
				own.Method = q.Method
				q = own
			}
			if q.Method == http.MethodOptions {
				continue
			}
			switch e.ask("", q) {
			case http.StatusUnauthorized:
			case http.StatusForbidden, http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUpgradeRequired: // it is answered so whoever asks
				continue
			default:
				t.Errorf("%s %s is answered without credentials", q.Method, pattern)
				continue
			}
			token, spent := e.speaker()
			status := 0
			for range 3 {
				status = e.ask(token, q)
			}
			if pattern == "/ws" && status == http.StatusBadRequest { // it is no handshake, of which limits.handshakes counts each
				continue
			}
			if !spent() {
				t.Errorf("%s %s (%s), answered %d: what is asked three times counts for nothing", q.Method, pattern, q.Target, status)
			}
		}
	}
}

// TestEveryMethodOfAIPCounts calls each method of the services, as their code has them, and says messages within a session.
func TestEveryMethodOfAIPCounts(t *testing.T) {
	t.Parallel()
	e := rate(t)
	conn, err := grpc.NewClient(e.ports.grpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	said := map[string]proto.Message{
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
	call := func(token, service, method string) {
		in := said[method]
		if in == nil {
			t.Fatalf("nothing is known to be said to %s of %s", method, service)
		}
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), await.Long)
		defer cancel()
		s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+service+"/"+method)
		if err == nil {
			err = errors.Join(s.SendMsg(in), s.CloseSend())
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.Header() // how it is answered is nothing to this test
	}
	for _, service := range []grpc.ServiceDesc{aip.GatewayService_ServiceDesc, aip.AgentService_ServiceDesc, aip.ToolService_ServiceDesc} {
		var methods []string
		for _, m := range service.Methods {
			methods = append(methods, m.MethodName)
		}
		for _, s := range service.Streams {
			methods = append(methods, s.StreamName)
		}
		for _, m := range methods {
			token, spent := e.speaker()
			for range 3 {
				call(token, service.ServiceName, m)
			}
			if !spent() {
				t.Errorf("%s of %s, called three times, counts for nothing", m, service.ServiceName)
			}
		}
	}
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

// TestEveryFrameOfAnAgentCounts says each frame that agents may send, by the word of the edge's own description, until the agent's tenant may say nothing more.
func TestEveryFrameOfAnAgentCounts(t *testing.T) {
	t.Parallel()
	e := rate(t)
	for _, kind := range e.clientFrames() {
		frame := said[kind]
		if frame == "" {
			t.Errorf("nothing is known to be said by %s", kind)
			continue
		}
		token, _ := e.speaker()
		c, _, err := websocket.DefaultDialer.Dial("ws://"+e.ports.public.addr()+"/ws?agent_id=speaker", http.Header{"Authorization": {"Bearer " + token}}) // which counts
		if err != nil {
			t.Fatal(err)
		}
		e.say(c, `{"type":"space.join","space":"room"}`)
		if strings.Contains(frame, "event_id") {
			e.say(c, `{"type":"space.publish","id":"e","space":"room","data":{"text":"a"},"stream":true}`)
		}
		for n := range 4 {
			if strings.Contains(frame, "%d") {
				e.say(c, fmt.Sprintf(frame, n))
			} else {
				e.say(c, frame)
			}
		}
		await.True(t, kind+", said four times, counts", func() bool { return e.node.Tenants()["t"+token[1:]].Limited.Load() > 0 })
		c.Close()
	}
}

func (e *rated) say(c *websocket.Conn, frame string) {
	e.t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		e.t.Fatal(err)
	}
}

// clientFrames returns the types of the frames that agents may send.
func (e *rated) clientFrames() (types []string) {
	e.t.Helper()
	token, _ := e.speaker()
	r, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, "http://"+e.ports.public.addr()+"/asyncapi.json", nil)
	if err != nil {
		e.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer a.Body.Close()
	var doc struct {
		Operations map[string]struct {
			Messages []struct {
				Ref string `json:"$ref"`
			}
		}
	}
	if err := json.NewDecoder(a.Body).Decode(&doc); err != nil {
		e.t.Fatal(err)
	}
	for _, m := range doc.Operations["fromClient"].Messages {
		name := strings.TrimSuffix(m.Ref[strings.LastIndex(m.Ref, "/")+1:], "-fromClient")
		types = append(types, strings.ReplaceAll(name, "-", "."))
	}
	if len(types) < 20 {
		e.t.Fatalf("agents may send %q", types)
	}
	return types
}
