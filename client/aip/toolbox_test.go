package aip

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

func TestWhatAToolReturnsIsContent(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	var result any
	startToolbox(t, config(g, "box"), map[string]func(context.Context, string) (any, error){
		"t": func(context.Context, string) (any, error) { return result, nil },
	})
	caller := newAgent(t, config(g, "alice"))
	for _, try := range []struct {
		result any
		want   []*ContentItem
	}{
		{nil, nil},
		{"text", []*ContentItem{Text("text")}},
		{[]byte{0, 255}, []*ContentItem{Embedded([]byte{0, 255})}},
		{json.RawMessage(`{"a":1}`), []*ContentItem{Text(`{"a":1}`)}},
		{Audio([]byte{7}), []*ContentItem{Audio([]byte{7})}},
		{[]*ContentItem{Text("a"), Image([]byte{1})}, []*ContentItem{Text("a"), Image([]byte{1})}},
		{map[string]any{"<": 2}, []*ContentItem{Text(`{"<":2}`)}},
		{3, []*ContentItem{Text("3")}},
	} {
		result = try.result
		resp, err := caller.CallTool(await.Context(t), "box", "t", nil)
		if err != nil || resp.GetIsError() || !proto.Equal(&ToolResponse{Content: resp.GetContent()}, &ToolResponse{Content: try.want}) {
			t.Errorf("%v: %v, %v, want %v", try.result, resp, err, try.want)
		}
	}
	result = func() {}
	if resp, err := caller.CallTool(await.Context(t), "box", "t", nil); err != nil || !resp.GetIsError() {
		t.Errorf("what is no JSON: %v, %v, want a tool that failed", resp, err)
	}
}

func TestAToolThatFailsSaysSo(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	var fails error
	box := startToolbox(t, config(g, "box"), map[string]func(context.Context, string) (any, error){
		"t": func(context.Context, string) (any, error) { return "unseen", fails },
	})
	caller, ctx := newAgent(t, config(g, "alice")), await.Context(t)
	fails = errors.New("no luck")
	resp, err := caller.CallTool(ctx, "box", "t", nil)
	if err != nil || !resp.GetIsError() || resp.GetErrorMessage() != "no luck" || len(resp.GetContent()) > 0 {
		t.Errorf("a tool that fails: %v, %v", resp, err)
	}
	fails = status.Error(codes.PermissionDenied, "not you")
	_, err = caller.CallTool(ctx, "box", "t", nil)
	isStatus(t, "a status", err, codes.PermissionDenied, "not you")
	_, err = caller.CallTool(ctx, "box", "x", nil)
	isStatus(t, "a tool that is not there", err, codes.NotFound, "Tool [x] not found")
	_, err = rawGateway(t, g).RouteToolCalling(ctx, &ToolRequest{ReceiverId: "box", ToolName: "t", Arguments: "{"})
	isStatus(t, "no JSON", err, codes.InvalidArgument, "the arguments are no JSON")
	for _, bad := range []any{json.RawMessage("{"), func() {}} {
		if _, err := caller.CallTool(ctx, "box", "t", bad); agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("arguments that are no JSON: %v", err)
		}
	}
	if err := box.AddTool(Tool{}, nil); err == nil {
		t.Error("a tool without a name is added")
	}
}

func TestATooLateToolIsATimeout(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startToolbox(t, config(g, "box"), map[string]func(context.Context, string) (any, error){
		"t": func(ctx context.Context, _ string) (any, error) { <-ctx.Done(); return nil, errors.New("late") },
	})
	ctx, cancel := context.WithTimeout(await.Context(t), 50*time.Millisecond)
	defer cancel()
	_, err := newAgent(t, config(g, "alice")).CallTool(ctx, "box", "t", nil)
	isStatus(t, "a deadline", err, codes.DeadlineExceeded, "")
	lists(t, g, "box", true)
}

type part struct {
	Part *part     `json:"part"`
	At   time.Time `json:"at,omitzero"`
}

type arguments struct {
	A    int            `json:"a"`
	B    []string       `json:"b,omitempty"`
	C    *bool          `json:"c"`
	D    map[string]any `json:"d,omitempty"`
	E    part           `json:"e,omitempty"`
	F    []byte         `json:"f,omitempty"`
	G    any            `json:"g,omitempty"`
	H    float64        `json:"-"`
	None int            `json:",omitempty"`
}

// double is a tool.
func double(_ context.Context, a arguments) (any, error) { return a.A * 2, nil }

func TestAToolIsToldWithTheSchemaOfItsArguments(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	box := startToolbox(t, config(g, "box"), nil)
	if err := AddFunc(box, Tool{Name: "t", Description: "d", Version: "2"}, double); err != nil {
		t.Fatal(err)
	}
	if err := box.UpdateInfo(await.Context(t)); err != nil {
		t.Fatal(err)
	}
	info := g.Toolboxes()["box"].GetTools()
	if len(info) != 1 || info[0].GetName() != "t" || info[0].GetDescription() != "d" || info[0].GetVersion() != "2" {
		t.Fatalf("the tools are %v", info)
	}
	var schema struct {
		Type       string
		Required   []string
		Properties map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(info[0].GetArguments()), &schema); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a": `{"type":"integer"}`, "b": `{"type":"array","items":{"type":"string"}}`, "c": `{"type":"boolean"}`, "d": `{"type":"object"}`, "f": `{"type":"string"}`, "g": `{}`, "None": `{"type":"integer"}`,
	} {
		if got := string(schema.Properties[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if len(schema.Properties) != 8 || schema.Type != "object" || len(schema.Required) != 1 || schema.Required[0] != "a" {
		t.Errorf("the schema is %s", info[0].GetArguments())
	}
}

func TestArgumentsAreAStruct(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	box := startToolbox(t, config(g, "box"), nil)
	if err := AddFunc(box, Tool{Name: "t"}, double); err != nil {
		t.Fatal(err)
	}
	caller := newAgent(t, config(g, "alice"))
	if resp, err := caller.CallTool(await.Context(t), "box", "t", map[string]int{"a": 21}); err != nil || TextOf(resp.GetContent()) != "42" {
		t.Errorf("the tool answers %v, %v", resp, err)
	}
	if resp, err := caller.CallTool(await.Context(t), "box", "t", map[string]string{"a": "x"}); err != nil || !resp.GetIsError() {
		t.Errorf("arguments that do not suit: %v, %v", resp, err)
	}
	box.AddTool(Tool{Name: "t"}, func(context.Context, json.RawMessage) (any, error) { return "another", nil })
	if resp, err := caller.CallTool(await.Context(t), "box", "t", nil); err != nil || TextOf(resp.GetContent()) != "another" {
		t.Errorf("a tool that was replaced answers %v, %v", resp, err)
	}
}
