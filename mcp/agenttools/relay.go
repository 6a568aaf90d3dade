package agenttools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
)

// callName is the tool of the server that calls tools of agents, where they are too many to be tools of the server.
const callName = "agora_call_tool"

// callInput and callOutput are JSON Schemas.
var (
	callInput = json.RawMessage(`{"type":"object","properties":{` +
		`"agent":{"type":"string","description":"Id of the agent that has the tool, as ` + findName + ` returns it."},` +
		`"tool":{"type":"string","description":"Name of the tool, as ` + findName + ` returns it."},` +
		`"arguments":{"type":"object","description":"What the tool takes, as its schema says; left out where it takes nothing."}},` +
		`"required":["agent","tool"],"additionalProperties":false}`)
	callOutput = json.RawMessage(`{"type":"object","properties":{` +
		`"result":{"description":"What the tool answered: JSON, or a string where it answered with text. Images, audio and files stand beside it.",` +
		`"anyOf":[{"type":"object"},{"type":"array"},{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"null"}]}},` +
		`"required":["result"]}`)
)

const callText = "Calls a tool that another agent offers, and returns its answer. Find the tool with " + findName + " first, which returns its agent, its name and " +
	"the schema of its arguments. The other agent does the work: it may take minutes, and what the tool does is up to that agent."

func (t *Catalog) callTool() offering {
	return offering{fingerprint: callName, handler: t.handleCall, tool: &mcp.Tool{
		Name: callName, Title: "Call a tool of another agent", Description: callText, InputSchema: callInput, OutputSchema: callOutput,
	}}
}

func (t *Catalog) handleCall(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	in := struct {
		Agent     string          `json:"agent"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}{}
	if err := decode(req.Params.Arguments, &in); err != nil || in.Agent == "" || in.Tool == "" {
		return refused(callName + ` takes {"agent": ID, "tool": NAME, "arguments": OBJECT} and nothing else; arguments may be left out. Call it again like that.`), nil
	}
	x, err := t.lookUp(ctx, in.Agent, in.Tool)
	if err != nil {
		if e, ok := errors.AsType[*noTool](err); ok {
			return refused(e.Error()), nil
		}
		return refused(t.problem(x, err)), nil
	}
	w, err := t.call(ctx, req, x, in.Arguments)
	r := w.result(t.sentence(x, err))
	if err == nil {
		r.StructuredContent = encoded(map[string]any{"result": w.outcome()})
	}
	return r, nil
}

// outcome returns the answer as one value: its JSON where the result is JSON, else its text.
func (w *answer) outcome() any {
	if w.value != nil {
		return w.value
	}
	var b strings.Builder
	for _, c := range w.blocks {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// noTool says that an agent has no such tool, and which it has.
type noTool struct {
	agent, tool string
	names       []string
}

func (e *noTool) Error() string {
	names := make([]string, 0, 10)
	for _, n := range e.names[:min(len(e.names), cap(names))] {
		names = append(names, fmt.Sprintf("%q", n))
	}
	return fmt.Sprintf("The agent %q has no tool %q. It has %d: %s. Call one of these, or find another with %s.",
		cut(e.agent, maxProblem), cut(e.tool, maxProblem), len(e.names), strings.Join(names, ", "), findName)
}

// lookUp returns a tool that is known, or that the card of its agent has now. An agent that names no tools is called by
// any name. Errors: noTool, and those of a card.
func (t *Catalog) lookUp(ctx context.Context, agent, name string) (tool, error) {
	for _, x := range t.snapshot() {
		if x.agent == agent && x.name == name {
			return x, nil
		}
	}
	x := tool{agent: agent, name: name}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	card, err := t.cardOf(ctx, agent)
	if err != nil {
		return x, err
	}
	e := &noTool{agent: agent, tool: name}
	for _, x := range toolsOf(card) {
		if x.name == name {
			return x, nil
		}
		e.names = append(e.names, x.name)
	}
	if len(e.names) == 0 {
		return x, nil
	}
	return x, e
}

// decode reads the arguments of a tool of this package: an object that has no member but those of v.
func decode(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return agora.Errorf(agora.InvalidRequest, "more than one value")
	}
	return nil
}
