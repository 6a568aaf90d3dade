package iat

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/agora-relay/agora"
)

func asking(payload string) *Envelope {
	return &Envelope{ID: "m", Type: Request, Payload: []byte(payload)}
}

func TestAllowedToolsThatAreAbsentAreNoLimit(t *testing.T) {
	for payload, want := range map[string]Execute{
		`{"query":"q"}`: {Query: "q"},
		`{"query":"\ud83d","allowed_tools":null}`:          {Query: "\uFFFD"},
		`{"query":"","allowed_tools":[]}`:                  {Limited: true, Allowed: []string{}},
		`{"query":"q","allowed_tools":["a","\u0062","a"]}`: {Query: "q", Limited: true, Allowed: []string{"a", "b", "a"}},
	} {
		got, err := asking(payload).Execute()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s asks for %+v, %v, want %+v", payload, got, err, want)
		}
	}
}

func TestArgumentsOfAToolKeepTheirBytes(t *testing.T) {
	for payload, want := range map[string]ToolCall{
		`{"tool_name":"a"}`:                                           {Name: "a"},
		`{"tool_name":"a","arguments":null}`:                          {Name: "a"},
		`{"tool_name":"\u0061","arguments":{ "x":1.0,"x":"\ud83d" }}`: {Name: "a", Arguments: json.RawMessage(`{ "x":1.0,"x":"\ud83d" }`)},
	} {
		got, err := asking(payload).ToolCall()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s calls %+v, %v, want %+v", payload, got, err, want)
		}
	}
}

func TestRegistrationIsRead(t *testing.T) {
	payload := `{"action":"register","agent":{"id":"a","name":"A","description":"d","domain":"x","version":"1"},"tools":[{"name":"t",` +
		`"input_schema":{"type": "object"},"output_schema":false},{"name":"u","description":null,"extra":1}],"workspace_root":"/src/","more":[]}`
	want := Registration{
		Agent: "a", Name: "A", Description: "d", Domain: "x", Version: "1", Root: "/src/",
		Tools: []Tool{{Name: "t", Input: json.RawMessage(`{"type": "object"}`), Output: json.RawMessage(`false`)}, {Name: "u"}},
	}
	got, err := asking(payload).Registration()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("registered as %+v, %v, want %+v", got, err, want)
	}
	card := &agora.Agent{ID: "a", Registration: agora.Registration{Media: MediaRegister, Body: []byte(payload)}}
	if RootOf(card) != "/src/" || string(OutputOf(card, "t")) != "false" || OutputOf(card, "u") != nil || OutputOf(card, "v") != nil {
		t.Errorf("the card has the root %q and the outputs %s, %s, %s", RootOf(card), OutputOf(card, "t"), OutputOf(card, "u"), OutputOf(card, "v"))
	}
	card.Registration.Media = "text/plain"
	if RootOf(card) != "" || RootOf(nil) != "" {
		t.Error("a registration of another dialect has a root")
	}
	for _, short := range []string{`{"agent":"a"}`, `{"agent":"a","tools":null,"workspace_root":null}`} {
		if got, err := asking(short).Registration(); err != nil || !reflect.DeepEqual(got, Registration{Agent: "a"}) {
			t.Errorf("%s registers %+v, %v", short, got, err)
		}
	}
}

func TestOnlyTrueAndFalseDecide(t *testing.T) {
	for payload, want := range map[string][2]bool{
		`{"approved":true}`: {true, true}, `{"a":1,"approv\u0065d": false }`: {false, true},
		`{}`: {}, `{"approved":null}`: {}, `{"approved":"true"}`: {}, `{"approved":1}`: {}, `{"approved":true,"approved":true}`: {},
		`true`: {}, `null`: {}, ``: {}, `[{"approved":true}]`: {}, `{"x":{"approved":true}}`: {},
	} {
		if approved, ok := Approved(json.RawMessage(payload)); approved != want[0] || ok != want[1] {
			t.Errorf("Approved(%s) = %v, %v, want %v", payload, approved, ok, want)
		}
	}
}

func TestChunksAndUnknownActionsAreNotChecked(t *testing.T) {
	for _, e := range []Envelope{
		{Type: Chunk, Action: ActionExecute, Payload: []byte(`{"action":"execute"}`)},
		{Type: Request, Action: "dance", Payload: []byte(`{"action":"dance"}`)},
		{Type: Request, Payload: []byte(`{"action":7}`)},
		{Type: Request},
		{Type: Response, Action: ActionApproval, Payload: []byte(`{"action":"require_approval","approved":true}`)},
	} {
		if err := CheckAction(&e); err != nil {
			t.Errorf("%s is refused: %v", e.Payload, err)
		}
	}
}
