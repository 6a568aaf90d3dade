package wire

import (
	"encoding/json"
	"testing"
)

func TestActionsKeepTheBytesOfWhatTheyCarry(t *testing.T) {
	odd := json.RawMessage("{ \"n\":1.0e5,\"s\":\"<\\ud83d>\" }")
	for got, want := range map[string]string{
		string(AppendHandoff(nil, "r\"1", "POST", "/greet/{name}", odd, json.RawMessage("7 "))): "{\"action\":\"handoff\",\"request_id\":\"r\\\"1\",\"method\":\"POST\",\"path\":\"/greet/{name}\",\"params\":" +
			string(odd) + ",\"input_data\":7 }",
		string(AppendHandoff(nil, "r", "GET", "/", nil, nil)): `{"action":"handoff","request_id":"r","method":"GET","path":"/","params":{},"input_data":null}`,
		string(AppendHandoff(nil, "", "GET", "/", nil, nil)):  `{"action":"handoff","method":"GET","path":"/","params":{},"input_data":null}`,
		string(AppendToolCall(nil, "r", "a<b", odd)):          `{"action":"call_tool","request_id":"r","tool_name":"a<b","arguments":` + string(odd) + `}`,
		string(AppendToolCall(nil, "r", "t", nil)):            `{"action":"call_tool","request_id":"r","tool_name":"t","arguments":{}}`,
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("no JSON: %s", got)
		}
	}
}

func TestAnActionIsNamedOnceByAString(t *testing.T) {
	for payload, want := range map[string]string{
		`{"action":"handoff"}`: "handoff", ` {"x":{"action":"y"},"\u0061ction":"h"}`: "h", `{"action":"a","action":"a"}`: "", `{"Action":"a"}`: "",
		`{"action":7}`: "", `"action"`: "", `[]`: "", ``: "", `{"action":"a"`: "", `{"action":"\ud83d"}`: "",
	} {
		if got := ActionOf(json.RawMessage(payload)); got != want {
			t.Errorf("%s names the action %q, want %q", payload, got, want)
		}
	}
}
