package iat_test

import (
	"fmt"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

func TestCallsOfToolsAreHeldWhateverMessageSaysThem(t *testing.T) {
	t.Parallel()
	s, w, _, _ := relayed(t)
	s.gives("w", "t1", `,"allowed_tools":["dig"]`, func() { w.Expect(`{"type":"message","from":"host","request_id":"t1"}`) })
	for i, c := range []struct{ payload, code string }{
		{`{"action":"call_tool","tool_name":"hoe"}`, "FORBIDDEN"},
		{`{"action":"call_tool","tool_name":"fly"}`, "NOT_FOUND"},
		{`{"action":"call_tool","tool_name":"dig","arguments":[]}`, "INVALID_REQUEST"},
		{`{"action":"call_tool"}`, "INVALID_REQUEST"},
		{` { "x":{"action":1}, "\u0061ction" : "call\u005ftool", "tool_name":"hoe"}`, "FORBIDDEN"},
		{`{"action":"call_tool","tool_name":"dig","action":"think"}`, "INVALID_REQUEST"},
		{`{"action":"think","tool_name":"hoe","action":"call_tool"}`, "INVALID_REQUEST"},
		{`{"action":"execute","query":"q","allowed_tools":"dig"}`, "INVALID_REQUEST"},
	} {
		id := fmt.Sprint("n", i)
		w.Send(fmt.Sprintf(`{"type":"send","id":%q,"to":"host","payload":%s}`, id, c.payload))
		w.Expect(fmt.Sprintf(`{"type":"error","code":%q,"request_id":%q}`, c.code, id))
		w.Send(fmt.Sprintf(`{"type":"send","id":"s%d","to":"host","stream":true,"stream_id":"s%d","payload":%s}`, i, i, c.payload))
		w.Expect(fmt.Sprintf(`{"type":"error","code":"INVALID_REQUEST","request_id":"s%d"}`, i))
		status := map[string]int{"FORBIDDEN": 403, "NOT_FOUND": 404, "INVALID_REQUEST": 400}[c.code]
		for _, path := range []string{"/agents/host/ask?as=w", "/agents/host/ask?as=x"} {
			if status == 403 && path[len(path)-1] == 'x' { // has no task
				continue
			}
			if a := s.ask(t, call{path: path, body: c.payload}); a.status != status {
				t.Errorf("%s to %s is answered %d %s, want %d", c.payload, path, a.status, a.body, status)
			}
		}
	}
	for _, payload := range []string{`{"action":"call_tool","tool_name":"dig"}`, `{"\u0061ction":"call_tool","tool_name":"dig"}`, `["\u0061ction"]`, `"\u0061"`, `{"action":["call_tool"]}`, `{"action":"hoe","tool_name":"hoe"}`} {
		w.Send(`{"type":"send","to":"host","payload":` + payload + `}`)
		if f := s.host.Expect(`{"header":{"msg_id":"<any>","type":"request","from":"w","to":"host","timestamp":"<any>"}}`); fieldRaw(string(f), "payload") != payload {
			t.Errorf("the host got %s, want %s", f, payload)
		}
	}
	got := s.start(t, call{path: "/agents/host/ask?as=w", body: `{"action":"call_tool","tool_name":"dig"}`})
	id := fieldOf(string(s.host.Expect(`{"header":{"msg_id":"<any>","type":"request","from":"w","to":"host","timestamp":"<any>"}}`)), "header", "msg_id")
	s.host.Send(said{id: "a", kind: "response", parent: id, from: "host", to: "w", payload: `7`}.String())
	await.Recv(t, "an answer", got).is(t, 200, `7`)
}

func TestAgentsOfTheRelayGiveTasks(t *testing.T) {
	t.Parallel()
	s, _, _, _ := relayed(t)
	w := s.socket(t, 1, "worker")
	boss := s.ws(t, 0, "boss")
	calls := func(id, tool string) {
		w.Send(said{id: id, kind: "request", from: "worker", to: "boss", payload: `{"action":"call_tool","tool_name":"` + tool + `"}`}.String())
	}
	for i, name := range []string{`,"request_id":"t"`, ``, `,"id":"f1"`} {
		id := fmt.Sprint("r", i)
		boss.Send(`{"type":"send","to":"worker","payload":{"action":"execute","query":"q","allowed_tools":["dig"]` + map[bool]string{true: name}[i == 0] + `}` + map[bool]string{true: name}[i == 2] + `}`)
		if i == 2 {
			boss.Expect(`{"type":"receipt","request_id":"f1","status":"stored"}`)
		}
		task := fieldOf(string(w.Expect(`{"header":{"msg_id":"<any>","type":"request","from":"boss","to":"worker","timestamp":"<any>"}}`)), "header", "msg_id")
		calls(id+"hoe", "hoe")
		w.Expect(fmt.Sprintf(`{"payload":{"error":{"code":"FORBIDDEN","message":"<any>"}},"header":{"msg_id":"<any>","parent_id":%q,"type":"response","from":"agora","to":"worker","timestamp":"<any>"}}`, id+"hoe"))
		calls(id+"dig", "dig")
		boss.Expect(fmt.Sprintf(`{"type":"message","from":"worker","request_id":%q}`, id+"dig"))
		w.Send(said{id: id + "done", kind: "response", parent: task, from: "worker", to: "boss", payload: `"done"`}.String())
		boss.Expect(fmt.Sprintf(`{"type":"reply","from":"worker","request_id":%q,"payload":"done"}`, task))
		calls(id+"free", "hoe")
		boss.Expect(fmt.Sprintf(`{"type":"message","from":"worker","request_id":%q}`, id+"free"))
	}
}
