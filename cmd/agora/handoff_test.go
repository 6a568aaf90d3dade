package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/wire"
)

func TestAnAgentIsHandedARequestAndHasAToolCalledOverHTTP(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2")
	bob := connect(t, d.public[1])
	bob.say(`{"type":"agent.register","id":"1","agent":{"id":"bob","tools":[{"name":"add"}]}}`)
	bob.hear("agent.registered")
	plain := connect(t, d.public[1]+"?agent_id=plain")
	plain.hear("agent.registered")
	c := speaking(porttest.Protocols((*http.Protocols).SetHTTP1))
	at := httpOf(d.public[0]) + "/agents/"
	for _, one := range []struct {
		who              *agent
		path, body, asks string // what the agent is handed, but for its request_id
	}{
		{bob, "bob/handoff", `{"method":"post","path":"/greet/{name}","params":{ "name":"Ada"},"input_data":1.0}`,
			`{"action":"handoff","request_id":"ID","method":"POST","path":"/greet/{name}","params":{ "name":"Ada"},"input_data":1.0}`},
		{bob, "bob/handoff", `{"method":"GET","path":"/"}`, `{"action":"handoff","request_id":"ID","method":"GET","path":"/","params":{},"input_data":null}`},
		{bob, "bob/handoff", `{"method":"GET","path":"/","params":null,"input_data":null}`, `{"action":"handoff","request_id":"ID","method":"GET","path":"/","params":{},"input_data":null}`},
		{bob, "bob/tools/add", `{"a":1e2}`, `{"action":"call_tool","request_id":"ID","tool_name":"add","arguments":{"a":1e2}}`},
		{plain, "plain/tools/any%2Fthing", `[]`, `{"action":"call_tool","request_id":"ID","tool_name":"any/thing","arguments":[]}`}, // it has declared none
	} {
		resp := asks(t, c, at+one.path+"?as=anna", one.body, "Accept: text/event-stream")
		payload := one.who.hear("message").Payload
		id := wire.RequestIDOf(payload)
		if got := strings.Replace(string(payload), id, "ID", 1); got != one.asks {
			t.Errorf("%s: handed %s, want %s", one.path, got, one.asks)
		}
		one.who.say(`{"type":"reply","to":"anna","payload":{"request_id":"` + id + `","ok":true}}`)
		body, err := io.ReadAll(resp.Body)
		if want := "event: reply\ndata: {\"request_id\":\"" + id + "\",\"ok\":true}\n\n"; string(body) != want || err != nil {
			t.Errorf("%s: answered %q %v, want %q", one.path, body, err, want)
		}
	}
	for _, one := range []struct {
		path, body string
		want       int
		code       string
	}{
		{"bob/tools/multiply", `{}`, 404, "NOT_FOUND"},
		{"nobody/tools/add", `{}`, 404, "AGENT_NOT_FOUND"},
		{"nobody/handoff", `{"method":"GET","path":"/"}`, 404, "AGENT_NOT_FOUND"},
		{"bob/handoff", `{"method":"GET"}`, 400, "INVALID_REQUEST"},
		{"bob/handoff", `{"method":"G T","path":"/"}`, 400, "INVALID_REQUEST"},
		{"bob/handoff", `{"method":"GET","path":"/","params":[]}`, 400, "INVALID_REQUEST"},
		{"bob/handoff", `{"method":"GET","path":"/","input":1}`, 400, "INVALID_REQUEST"},
		{"bob/handoff", `7`, 400, "INVALID_REQUEST"},
	} {
		resp := asks(t, c, at+one.path, one.body)
		var fault struct {
			Error struct{ Code, Message string }
		}
		if err := json.NewDecoder(resp.Body).Decode(&fault); err != nil || resp.StatusCode != one.want || fault.Error.Code != one.code || fault.Error.Message == "" {
			t.Errorf("%s %s: %d %+v %v, want %d %s", one.path, one.body, resp.StatusCode, fault, err, one.want, one.code)
		}
	}
}
