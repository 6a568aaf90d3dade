package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// askVector is one file of testdata/asks: a payload, by its text, and what it asks for, whatever door and verb it comes
// by.
type askVector struct {
	About     string `json:"about"`
	Payload   string `json:"payload"`
	Action    string `json:"action"`    // at which edges look; empty for any other
	Tool      string `json:"tool"`      // that it calls
	Arguments string `json:"arguments"` // of the call, with the bytes that they have in the payload
	Error     string `json:"error"`     // part of the message of INVALID_REQUEST, as it can be read in two ways
}

func TestPayloadsThatAskForWhatEdgesLookAtAreTold(t *testing.T) {
	for name, v := range load[askVector](t, "asks") {
		t.Run(name, func(t *testing.T) {
			if v.About == "" || strings.Contains(name, "/bad-") != (v.Error != "") {
				t.Fatalf("about %q, error %q: want a sentence, and an error where the name begins with bad-", v.About, v.Error)
			}
			action, err := Asks([]byte(v.Payload))
			refused := err != nil && agora.AsError(err).Code == agora.InvalidRequest
			if action != v.Action || refused != (v.Error != "") || refused && !strings.Contains(err.Error(), v.Error) {
				t.Errorf("asks for %q, %v, want %q, %q", action, err, v.Action, v.Error)
			}
			if tool, arguments, _ := ToolCallOf([]byte(v.Payload)); tool != v.Tool || string(arguments) != v.Arguments && tool != "" {
				t.Errorf("calls %q with %s, want %q with %s", tool, arguments, v.Tool, v.Arguments)
			}
		})
	}
}

func TestWhatAPayloadAsksForIsToldThoughItIsDeep(t *testing.T) {
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	for payload, refused := range map[string]bool{
		`{"action":"call_tool","x":` + deep + `}`: true, `{"x":"call_tool","y":` + deep + `}`: true, `{"y":` + deep + `}`: false, ``: false, `1`: false,
	} {
		if action, err := Asks([]byte(payload)); action != "" || (err != nil) != refused {
			t.Errorf("%.100s asks for %q, %v", payload, action, err)
		}
	}
}

// FuzzAsks holds that the one who calls a tool by a payload, or takes a task or a handoff from it, has an edge know
// that it is one: our own readers, and those that decode it as Go does.
func FuzzAsks(f *testing.F) {
	for _, v := range load[askVector](f, "asks") {
		f.Add(v.Payload)
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
