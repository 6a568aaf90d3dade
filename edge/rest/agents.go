package rest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/edge/web"
)

// Agents on a page of /agents.
const (
	pageSize = 1000 // where the request does not say
	maxPage  = 10000
)

// listing is the answer to /agents and /agents/find.
type listing struct {
	Agents []entry `json:"agents"`
	Next   string  `json:"next,omitempty"` // what to ask for as after, where there are more
}

// entry is an agent as the directory has it.
type entry struct {
	ID           agora.AgentID     `json:"id"`
	Name         string            `json:"name"`
	Endpoint     string            `json:"endpoint,omitempty"`
	RegisteredAt string            `json:"registered_at"`
	Status       agora.AgentStatus `json:"status,omitempty"`
	Dialect      string            `json:"dialect"`
	Domain       string            `json:"domain,omitempty"`
	Description  string            `json:"description,omitempty"`
	Type         string            `json:"type,omitempty"`
	Version      string            `json:"version,omitempty"`
	Peer         string            `json:"peer,omitempty"`
	Addresses    []string          `json:"addresses,omitempty"`
	Capabilities []string          `json:"capabilities,omitempty"`
	Skills       []skill           `json:"skills,omitempty"`
	Tools        []skill           `json:"tools,omitempty"`
	Metadata     json.RawMessage   `json:"metadata,omitempty"`
}

// skill is a skill or a tool.
type skill struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

func entryOf(a agora.Agent) entry {
	return entry{
		ID: a.ID, Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: a.RegisteredAt.UTC().Format(time.RFC3339), Status: a.Status,
		Dialect: a.DialectName(), Domain: a.Domain, Description: a.Description, Type: a.Type, Version: a.Version,
		Peer: a.Peer, Addresses: a.Addresses, Capabilities: a.Capabilities, Skills: skills(a.Skills), Tools: skills(a.Tools), Metadata: a.Metadata,
	}
}

func skills(all []agora.Skill) (out []skill) {
	for _, s := range all {
		out = append(out, skill(s))
	}
	return out
}

func answer(x *web.Exchange, found []agora.Agent, next string) error {
	list := listing{Agents: make([]entry, len(found)), Next: next}
	for i, a := range found {
		list.Agents[i] = entryOf(a)
	}
	return x.Answer(http.StatusOK, list)
}

// agents answers with a page of the directory.
func agents(x *web.Exchange) error {
	q, err := x.Query("skill", "domain", "dialect", "after", "limit")
	if err != nil {
		return err
	}
	f := directory.Filter{
		Skill: q.Get("skill"), Domain: q.Get("domain"), Dialect: q.Get("dialect"), After: agora.AgentID(q.Get("after")), Limit: pageSize,
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return agora.Errorf(agora.InvalidRequest, "limit must be 1 to %d", maxPage)
		}
		f.Limit = n
	}
	found, more, err := x.Actor.Directory().Select(x.Context(), f)
	if err != nil {
		return err
	}
	next := ""
	if more {
		next = string(found[len(found)-1].ID)
	}
	return answer(x, found, next)
}

// query is the body of a POST to /agents/find.
type query struct {
	Skill string `json:"skill"`
	Goal  string `json:"goal"`
	Limit int    `json:"limit"`
}

func find(x *web.Exchange) error {
	var q query
	if err := x.Decode(&q); err != nil {
		return err
	}
	found, err := x.Actor.Directory().Find(x.Context(), directory.Query(q))
	if err != nil {
		return err
	}
	return answer(x, found, "")
}

// idOf returns the id of the agent in the path.
func idOf(x *web.Exchange) (agora.AgentID, error) {
	return agora.ParseAgentID(cmp.Or(x.Request.PathValue("id"), "find"))
}

func agent(x *web.Exchange) error {
	id, err := idOf(x)
	if err != nil {
		return err
	}
	a, err := x.Actor.Directory().Card(x.Context(), id)
	if err != nil {
		return err
	}
	return x.Answer(http.StatusOK, entryOf(a))
}

// card answers with the card of an agent as its dialect has it, which are the very bytes with which it registered, or those that it answers now; else
// with what is known of it.
func (d *door) card(x *web.Exchange) error {
	t, err := termsOf(x)
	if err != nil {
		return err
	}
	a, card, err := d.carriers.Card(x.Context(), t.call(x))
	if err != nil {
		return err
	}
	if card.Body == nil {
		return x.Answer(http.StatusOK, entryOf(a))
	}
	return x.AnswerBytes(http.StatusOK, card.Media, card.Body)
}
