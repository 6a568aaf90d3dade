package p2p_test

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// A handoff to the path of a tool is a call of that, and so held to what its agent has declared.
func TestAHandoffToAToolCallsIt(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	bob := s.agent(1, "bob", `,"tools":[{"name":"add","schema":{"type":"object","required":["a"]}}]`)
	h := s.enter()
	go func() {
		f := bob.Expect(`{"type":"message"}`)
		if got := f.Raw("payload"); !strings.Contains(got, `"action":"call_tool"`) || !strings.Contains(got, `"tool_name":"add"`) || !strings.Contains(got, `"arguments":{"a":1.0}`) {
			t.Errorf("bob is asked %s", got)
		}
		bob.Send(`{"type":"reply","to":"` + h.ID().String() + `","payload":{"request_id":` + f.Raw("request_id") + `,"sum":2}}`)
	}()
	if got := asks(t, h.edge(0, wire.HandoffProtocol), `{"method":"POST","path":"/agents/bob/tools/add","input_data":{"a":1.0}}`); !strings.Contains(got, `"sum":2`) {
		t.Errorf("bob's answer is %s", got)
	}
	for q, code := range map[string]string{
		`{"method":"POST","path":"/agents/bob/tools/add","input_data":{}}`: `"code":400`, `{"method":"POST","path":"/agents/bob/tools/take"}`: `"code":404`,
	} {
		if got := asks(t, h.edge(1, wire.HandoffProtocol), q); !strings.Contains(got, code) {
			t.Errorf("%s is answered %s, want %s", q, got, code)
		}
	}
}
