package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

func TestPayloadsThatAskForWhatEdgesLookAtAreTold(t *testing.T) {
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	for payload, want := range map[string]string{
		`{"action":"call_tool"}`: ActionCallTool, ` { "a" : {"action":"x"} , "action" : "execute" }`: ActionExecute, `{"\u0061ction":"call_t\u006fol"}`: ActionCallTool,
		`{"x":1,"action":"handoff"}`: ActionHandoff, "\t\r\n {\"action\":\"c\\u0061ll_tool\"}": ActionCallTool, `{"action":"\u0065xecute"}`: ActionExecute,
		`{"action":"call_tool","action":"x"}`: "!", `{"action":"x","\u0061ction":"execute"}`: "!", `{"action":1,"action":"execute"}`: "!",
		`{"Action":"call_tool"}`: "!", `{"ACTION":"handoff"}`: "!", `{"\u0041ction":"call_tool"}`: "!", `{"action":"x","Action":"call_tool"}`: "!", `{"action":"call_tool","Action":"x"}`: "!",
		`{"action":"call_tool","tool_name":"a","Tool_Name":"b"}`: "call_tool!", `{"action":"call_tool","tool_name":"a","tool_name":"b"}`: "call_tool!",
		`{"action":"call_tool","argument` + "\u017f" + `":{}}`: "call_tool!", `{"action":"execute","Allowed_Tools":[]}`: "execute!", `{"action":"handoff","Path":"/"}`: "handoff!",
		`{"action":"call_tool","x":` + deep + `}`: "!", `{"x":"call_tool","y":` + deep + `}`: "!", `{"y":` + deep + `}`: "",
		`{"action":"think"}`: "", `{"action":"x","action":"y"}`: "", `{"action":["call_tool"]}`: "", `{"x":{"action":"call_tool"}}`: "", `["action"]`: "", `"action"`: "", `{"x":"\u00e9"}`: "", ``: "", `1`: "",
		`{"action":"call_tools"}`: "", `{"actions":"call_tool"}`: "", `{"text":"call_tool execute handoff"}`: "", `["call_tool"]`: "", `"{\"action\":\"call_tool\"}"`: "", "\ufeff{\"action\":\"call_tool\"}": "",
	} {
		action, err := Asks([]byte(payload))
		if err != nil && agora.AsError(err).Code == agora.InvalidRequest {
			action += "!"
		}
		if action != want {
			t.Errorf("%.100s asks for %q, %v, want %q", payload, action, err, want)
		}
	}
}

// FuzzAsks holds that whoever calls a tool by a payload, or takes a task or a handoff from it, has an edge know that it is one: our own readers, and those that decode it as Go does.
func FuzzAsks(f *testing.F) {
	for _, s := range []string{
		`{"action":"call_tool","tool_name":"t","arguments":{}}`, `{"Action":"call_tool"}`, `{"action":"x","\u0061ction":"call_tool"}`, ` {"action":"execute","allowed_tools":[]}`,
		`{"action":"handoff","method":"GET","path":"/tools/x"}`, `{"action":"call_tool","tool_name":"a","Tool_name":"b"}`, `{"a":[[[[]]]],"action":"call_tool"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) { // no edge stores it
			return
		}
		action, err := Asks([]byte(s))
		tool, arguments, called := ToolCallOf([]byte(s))
		if called && err == nil && action != ActionCallTool {
			t.Fatalf("%s calls %q, and asks for %q", s, tool, action)
		}
		if a := ActionOf([]byte(s)); guardedName(a) && err == nil && action != a {
			t.Fatalf("%s has the action %q, and asks for %q", s, a, action)
		}
		var lax struct {
			Action    string
			Tool      string          `json:"tool_name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if json.Unmarshal([]byte(s), &lax) != nil || err != nil || !guardedName(lax.Action) {
			return
		}
		if action != lax.Action {
			t.Fatalf("%s is %q to a lax reader, and asks for %q", s, lax.Action, action)
		}
		if called && (lax.Tool != tool || string(lax.Arguments) != string(arguments)) {
			t.Fatalf("%s calls %q with %s to a lax reader, and %q with %s", s, lax.Tool, lax.Arguments, tool, arguments)
		}
	})
}

func guardedName(s string) bool {
	return s == ActionCallTool || s == ActionExecute || s == ActionHandoff
}

// BenchmarkAsks is what a message of 1 KiB to any agent costs the check of what it asks for.
func BenchmarkAsks(b *testing.B) {
	payload := []byte(`{"text":"` + strings.Repeat("some words ", 92) + `"}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		if action, err := Asks(payload); action != "" || err != nil {
			b.Fatal(action, err)
		}
	}
}

// BenchmarkAsksMembers is the same for a message of many members.
func BenchmarkAsksMembers(b *testing.B) {
	payload := []byte(`{` + strings.Repeat(`"name":"echo","count":17,`, 40) + `"action":"query"}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		if action, err := Asks(payload); action != "" || err != nil {
			b.Fatal(action, err)
		}
	}
}
