package rest

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire/listing"
)

// Agents on a page of /agents.
const (
	pageSize = 1000 // where the request does not say
	maxPage  = 10000
)

// page is an answer of [listing.Agents] whose agents are encoded.
type page struct {
	Agents  []json.RawMessage `json:"agents"`
	Next    string            `json:"next,omitempty"`
	LeftOut []string          `json:"left_out,omitempty"`
}

func encode(a *agora.Agent) ([]byte, error) { return json.Marshal(listing.AgentOf(*a)) }

// agents answers with a page of the directory.
func agents(x *web.Exchange) error {
	q, err := x.Query("skill", "domain", "dialect", "after", "limit")
	if err != nil {
		return err
	}
	f := directory.Filter{Skill: q.Get("skill"), Domain: q.Get("domain"), Dialect: q.Get("dialect"), After: agora.AgentID(q.Get("after"))}
	most := pageSize
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return agora.Errorf(agora.InvalidRequest, "limit must be 1 to %d", maxPage)
		}
		most = n
	}
	found, err := x.Actor.Directory().Select(x.Context(), f)
	if err != nil {
		return err
	}
	var p page
	var last *agora.Agent
	if p.Agents, last, err = web.Page(found, most, encode); err != nil {
		return err
	}
	if last != nil {
		p.Next = string(last.ID)
	}
	return x.Answer(http.StatusOK, p)
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
	p := page{Agents: []json.RawMessage{}}
	found, p.LeftOut = directory.Fit(found, web.MaxListing, func(a *agora.Agent) int {
		b, failed := encode(a)
		err = errors.Join(err, failed)
		return len(b) + 1
	})
	for i := range found {
		b, failed := encode(&found[i])
		p.Agents, err = append(p.Agents, b), errors.Join(err, failed)
	}
	if err != nil {
		return err
	}
	return x.Answer(http.StatusOK, p)
}

// idOf returns the id of the agent in the path.
func idOf(x *web.Exchange) (agora.AgentID, error) {
	id := cmp.Or(x.Request.PathValue("id"), "find")
	if x.Request.Method == http.MethodDelete {
		return agora.ParseStoredID(id) // an earlier version may have taken it
	}
	return agora.ParseAgentID(id)
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
	return x.Answer(http.StatusOK, listing.AgentOf(a))
}

// card answers with the card of an agent as its dialect has it, which are the very bytes with which it registered, or
// those that it answers now; else with what is known of it.
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
		return x.Answer(http.StatusOK, listing.AgentOf(a))
	}
	return x.AnswerBytes(http.StatusOK, card.Media, card.Body)
}
