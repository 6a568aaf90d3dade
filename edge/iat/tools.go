package iat

import (
	"cmp"
	"encoding/json"
	"iter"
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

// listTools answers with a page of the tools of all agents that fit, whatever their dialect.
func listTools(x *web.Exchange) error {
	q, err := x.Query("name", "agent", "q", "after")
	if err != nil {
		return err
	}
	query := tools.Query{Name: q.Get("name"), Agent: agora.AgentID(q.Get("agent")), Q: strings.TrimSpace(q.Get("q"))}
	after := lastOf(q.Get("after"))
	agents, err := x.Actor.Directory().Select(x.Context(), directory.Filter{Skill: query.Name, From: max(query.Agent, after.Agent)})
	if err != nil {
		return err
	}
	l := lister{x: x, query: query, after: after}
	list, last, err := web.Page(l.each(agents), maxListed, func(t *tool) ([]byte, error) { return json.Marshal(t) })
	if err = cmp.Or(l.err, err); err != nil {
		return err
	}
	answer := struct {
		More  bool              `json:"more"`
		Next  string            `json:"next,omitempty"`
		Tools []json.RawMessage `json:"tools"`
	}{last != nil, "", list}
	if last != nil {
		answer.Next = string(last.Agent) + behind + last.Name
	}
	return x.Answer(http.StatusOK, answer)
}

// behind stands between an agent and its tool in what names the last tool of a page. No id has it.
const behind = "\n"

// lastOf returns the last tool of a page that was answered before.
func lastOf(after string) (t tool) {
	agent, name, _ := strings.Cut(after, behind)
	return tool{Agent: agora.AgentID(agent), Name: name}
}

// lister goes through the tools that a request means.
type lister struct {
	x     *web.Exchange
	query tools.Query
	after tool
	err   error // why it has ended early
}

// each returns the tools of agents with their schemas, which the directory's lists lack: agents are asked for theirs
// when they are come to.
func (l *lister) each(agents iter.Seq[agora.Agent]) iter.Seq[tool] {
	return func(yield func(tool) bool) {
		for a := range agents {
			if l.query.Agent != "" && a.ID > l.query.Agent {
				return
			}
			found := tools.Find([]agora.Agent{a}, l.query)
			if len(found) == 0 {
				continue
			}
			list, err := l.whole(found)
			if err != nil {
				l.err = err
				return
			}
			for _, t := range list {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// whole returns tools of one agent with their schemas, those alone that come behind the last page.
func (l *lister) whole(found []tools.Found) ([]tool, error) {
	cards, err := l.x.Actor.Directory().Counted().Cards(l.x.Context(), []agora.AgentID{found[0].Agent})
	if err != nil || len(cards) == 0 { // it has gone meanwhile
		return nil, err
	}
	list := toolsOf(&cards[0])
	if cards[0].ID == l.after.Agent {
		list = list[1+slices.IndexFunc(list, func(t tool) bool { return t.Name == l.after.Name }):]
	}
	return slices.DeleteFunc(list, func(t tool) bool {
		return !slices.ContainsFunc(found, func(f tools.Found) bool { return f.Tool.Name == t.Name })
	}), nil
}
