package iat

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire/iat"
)

// tool is a tool of an agent as the door lists it.
type tool struct {
	Agent       agora.AgentID   `json:"agent"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input_schema,omitempty"`
	Output      json.RawMessage `json:"output_schema,omitempty"`
}

// maxListed is how many tools one answer lists.
const maxListed = 1000

// toolsOf returns the tools of an agent.
func toolsOf(a *agora.Agent) []tool {
	list := make([]tool, len(a.Tools))
	for i, t := range a.Tools {
		list[i] = tool{a.ID, t.Name, t.Description, t.Schema, iat.OutputOf(a, t.Name)}
	}
	return list
}

// listTools answers with the tools of all agents that fit, whatever their dialect.
func listTools(x *web.Exchange) error {
	q, err := x.Query("name", "agent", "q")
	if err != nil {
		return err
	}
	agents, _, err := x.Actor.Directory().Select(x.Context(), directory.Filter{Skill: q.Get("name")})
	if err != nil {
		return err
	}
	found := tools.Find(agents, tools.Query{Name: q.Get("name"), Agent: agora.AgentID(q.Get("agent")), Q: strings.TrimSpace(q.Get("q"))})
	list, err := whole(x, found[:min(len(found), maxListed)])
	if err != nil {
		return err
	}
	return x.Answer(http.StatusOK, map[string]any{"tools": list, "more": len(found) > maxListed})
}

// whole returns tools with their schemas, which the directory's lists lack.
func whole(x *web.Exchange, found []tools.Found) ([]tool, error) {
	ids := make([]agora.AgentID, len(found))
	for i, f := range found {
		ids[i] = f.Agent
	}
	cards, err := x.Actor.Directory().Counted().Cards(x.Context(), slices.Compact(ids)) // they are sorted
	if err != nil {
		return nil, err
	}
	list := []tool{}
	for i := range cards {
		for _, t := range toolsOf(&cards[i]) {
			if slices.ContainsFunc(found, func(f tools.Found) bool { return f.Agent == t.Agent && f.Tool.Name == t.Name }) {
				list = append(list, t)
			}
		}
	}
	return list, nil
}
