package agenttools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// findName is the tool of the server that finds tools of agents, where they are too many to be tools of the server.
const findName = "agora_find_tool"

// Bounds of a search.
const (
	defaultFound = 5
	maxFound     = 20
	maxQuery     = 256             // characters
	maxFoundText = 8 << 10         // bytes of the result
	searchTime   = 5 * time.Second // for what the directory is asked
)

// findInput and findOutput are JSON Schemas.
var (
	findInput = json.RawMessage(`{"type":"object","properties":{` +
		`"query":{"type":"string","maxLength":256,"description":"What the tool is to do, in a few words, or its name, or the id of its agent. An empty query lists tools by name."},` +
		`"limit":{"type":"integer","minimum":1,"maximum":20,"description":"How many tools are wanted at most; 5 if left out."}},` +
		`"required":["query"],"additionalProperties":false}`)
	findOutput = json.RawMessage(`{"type":"object","properties":{` +
		`"tools":{"type":"array","description":"The tools that fit, the best first.","items":{"type":"object","properties":{` +
		`"agent":{"type":"string","description":"Id of the agent that has the tool."},` +
		`"tool":{"type":"string","description":"Name of the tool."},` +
		`"description":{"type":"string"},` +
		`"schema":{"type":"object","description":"JSON Schema of the arguments."}},` +
		`"required":["agent","tool","description","schema"]}},` +
		`"more":{"type":"integer","description":"How many further tools fit."},` +
		`"note":{"type":"string","description":"What to do next."}},` +
		`"required":["tools","more","note"]}`)
)

const findText = "Finds tools that other agents offer. There are too many of them to list each as a tool of its own: find one here by what it is to do, " +
	"then call it with " + callName + ", with the agent, the tool and arguments that fit its schema."

// foundTool is a tool as a search returns it.
type foundTool struct {
	Agent       string          `json:"agent"`
	Tool        string          `json:"tool"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// found is what a search returns.
type found struct {
	Tools []foundTool `json:"tools"`
	More  int         `json:"more"`
	Note  string      `json:"note"`
}

func (t *Catalog) findTool() offering {
	return offering{fingerprint: findName, handler: t.handleFind, tool: &mcp.Tool{
		Name: findName, Title: "Find a tool of another agent", Description: findText, InputSchema: findInput, OutputSchema: findOutput,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true},
	}}
}

func (t *Catalog) handleFind(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	in := struct {
		Query *string `json:"query"`
		Limit *int    `json:"limit"`
	}{}
	err := decode(req.Params.Arguments, &in)
	limit := defaultFound
	if in.Limit != nil {
		limit = *in.Limit
	}
	switch {
	case err != nil || in.Query == nil:
		return refused(findName + ` takes {"query": TEXT, "limit": NUMBER} and nothing else; limit may be left out. Call it again like that.`), nil
	case utf8.RuneCountInString(*in.Query) > maxQuery:
		return refused(fmt.Sprintf("The query is longer than %d characters. Ask in a few words.", maxQuery)), nil
	case limit < 1 || limit > maxFound:
		return refused(fmt.Sprintf("The limit must be 1 to %d.", maxFound)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	query := strings.TrimSpace(*in.Query)
	return structured(listed(t.search(ctx, query), limit)), nil
}

// search returns the tools that fit a query, the best first: those that are known, and those of agents that the
// cluster finds for it. It blocks until ctx ends at most; where the cluster can't be asked, what is known counts.
func (t *Catalog) search(ctx context.Context, query string) []tool {
	all := t.snapshot()
	if query == "" {
		return all
	}
	agents, err := t.agents.FindAgents(ctx, client.Query{Goal: query, Limit: maxFound})
	if err != nil {
		return rank(all, query, nil)
	}
	known, places := make(map[string]bool), make(map[string]int)
	for _, x := range all {
		known[x.agent] = true
	}
	var unknown []string
	for i, a := range agents {
		places[string(a.ID)] = i
		if !known[string(a.ID)] && t.matches(string(a.ID)) && len(a.Tools) > 0 {
			unknown = append(unknown, string(a.ID))
		}
	}
	cards, errs := t.cards(ctx, unknown)
	all = all[:len(all):len(all)]
	for i := range cards {
		if errs[i] == nil {
			all = append(all, toolsOf(cards[i])...)
		}
	}
	return rank(all, query, places)
}

// listed returns the first tools of a search, as many as are wanted and fit.
func listed(all []tool, limit int) found {
	f := found{Tools: []foundTool{}}
	size := 512 // of what stands around the tools
	for _, x := range all[:min(len(all), limit)] {
		item := foundTool{x.agent, x.name, x.text(), x.schema}
		n := len(encoded(item))
		if len(f.Tools) == 0 && size+n > maxFoundText {
			x.leftOut, item.Schema = len(x.schema), openSchema
			item.Description = x.text()
			n = len(encoded(item))
		}
		if size += n + 1; size > maxFoundText {
			break
		}
		f.Tools = append(f.Tools, item)
	}
	f.More = len(all) - len(f.Tools)
	f.Note = note(len(f.Tools), f.More, len(f.Tools) == limit || f.More == 0)
	return f
}

// note says what to do with so many tools, and so many that were not shown.
func note(shown, more int, room bool) string {
	switch {
	case shown == 0:
		return "No tool of another agent fits. Ask with other words, or with fewer; an empty query lists tools by name."
	case more == 0:
		return "These are all that fit. Call one with " + callName + "."
	case !room:
		return fmt.Sprintf("%d further tools fit, but the answer would be too large. Name more precisely what the tool is to do, or its agent, or ask for one at a time with limit 1.", more)
	}
	return fmt.Sprintf("%d further tools fit. Name more precisely what the tool is to do, or its agent, to narrow the search, or raise limit.", more)
}

// structured returns a value as the result of a tool that has an output schema.
func structured(v any) *mcp.CallToolResult {
	b := encoded(v)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(b)}}, StructuredContent: b}
}

// refused returns a result that says what is wrong with a call.
func refused(sentence string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: sentence}}, IsError: true}
}

// cardOf returns the card of an agent whose tools may be called. AGENT_NOT_FOUND where there is none.
func (t *Catalog) cardOf(ctx context.Context, id string) (agora.Agent, error) {
	if !t.matches(id) {
		return agora.Agent{}, agora.UnknownAgent(agora.AgentID(id))
	}
	return t.agents.AgentCard(ctx, id)
}
