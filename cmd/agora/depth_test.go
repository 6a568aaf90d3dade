package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/rawjson"
)

// TestNoVerbDeliversAFrameDeeperThanFramesMayBe calls a tool of an agent of WebSocket by every verb of every door, with
// arguments of each depth about the bound: whatever is put around them, what is taken comes in a frame of 64 levels at
// most, and the rest is refused.
func TestNoVerbDeliversAFrameDeeperThanFramesMayBe(t *testing.T) {
	t.Parallel()
	s := newToolSite(t)
	a := connect(t, s.dev.public[0])
	a.say(`{"type":"agent.register","id":"1","agent":{"id":"deep","tools":[{"name":"echo","schema":{"type":"object"}}]}}`)
	a.awaits("agent.registered")
	last := make(chan string)
	go func() { // ends with the socket
		for {
			_, b, err := a.ReadMessage()
			if err != nil {
				return
			}
			var m struct {
				Type, From string
				RequestID  string `json:"request_id"`
				Payload    struct {
					RequestID string `json:"request_id"`
				}
			}
			_ = json.Unmarshal(b, &m) // what it can't read it does not answer
			switch {
			case rawjson.Deeper(b, 64):
				t.Errorf("a frame is delivered that is deeper than 64: %.200s", b)
			case strings.Contains(string(b), "the last one"):
				close(last)
				return
			case m.Type == "message":
				const reply = `{"type":"reply","to":%q,"request_id":%q,"payload":{"request_id":%q}}`
				a.say(fmt.Sprintf(reply, m.From, m.RequestID, m.Payload.RequestID))
			}
		}
	}()
	for _, verb := range slices.Sorted(maps.Keys(toolVerbs)) {
		if verb == "aip RouteAgentCalling" { // in a session nothing is called
			continue
		}
		for depth := 58; depth <= 66; depth++ {
			arguments := `{"n":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
			answer := toolVerbs[verb](s, "worker", "deep", "echo", arguments)
			refused := slices.ContainsFunc([]string{"INVALID_REQUEST", "InvalidArgument", `"code":400`}, func(code string) bool {
				return strings.Contains(answer, code)
			})
			if refused != (depth >= 63) && (depth < 60 || depth > 64) {
				t.Errorf("arguments of depth %d by %s are answered %.200s", depth, verb, answer)
			}
		}
	}
	s.frame(`{"type":"send","id":%q,"to":%q,"payload":{"text":"the last one %s"}}`, "deep", "x")
	await.Recv(t, "the last message", last)
}
