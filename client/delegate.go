package client

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/p2p"
)

// Candidate is an agent that may be chosen, and what it says of itself.
type Candidate struct {
	agora.Agent                 // as [Client.FindAgents] has it
	Card        json.RawMessage // as [Client.Card] has it
}

// cardsAtOnce is how many cards are asked for at a time.
const cardsAtOnce = 8

// Delegate has another agent, of any dialect, do something: it looks for those that fit, asks them for their cards,
// several at a time, has choose choose one of those that have answered, the best that the directory knows first, and
// hands the request off to it. What becomes of that is told by the Call, as by [Client.Handoff]. The context governs
// all of it.
//
// choose returns the id of the chosen one, and may complete the request by what the card says; its error is Delegate's.
// Where it is nil the first is chosen. Where the request has no path then, it is that of the skill that was looked for,
// as the card has it, and else "/" and the skill's name; so it is with the method. Of one that fits a goal it is the
// first skill of the card.
//
// NOT_FOUND where nobody fits; where nobody that fits has answered, why the first has not.
func (c *Client) Delegate(ctx context.Context, q Query, choose func([]Candidate, *Handoff) (id string, err error), h Handoff) (*Call, error) {
	all, err := c.candidates(ctx, q)
	if err != nil {
		return nil, err
	}
	id := string(all[0].ID)
	if choose != nil {
		if id, err = choose(all, &h); err != nil {
			return nil, err
		}
	}
	if i := slices.IndexFunc(all, func(one Candidate) bool { return string(one.ID) == id }); i >= 0 && h.Path == "" {
		all[i].complete(&h, q.Skill)
	}
	return c.Handoff(ctx, id, h)
}

// candidates returns those that fit and have answered with their cards, the best first: one at least.
func (c *Client) candidates(ctx context.Context, q Query) ([]Candidate, error) {
	found, err := c.FindAgents(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, agora.Errorf(agora.NotFound, "no agent fits")
	}
	all, errs := make([]Candidate, len(found)), make([]error, len(found))
	places := make(chan struct{}, cardsAtOnce)
	var work sync.WaitGroup
	for i, a := range found {
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			all[i].Agent = a
			all[i].Card, errs[i] = c.Card(ctx, string(a.ID))
		})
	}
	work.Wait()
	answered := slices.DeleteFunc(all, func(one Candidate) bool { return one.Card == nil })
	if len(answered) == 0 {
		return nil, errs[0]
	}
	return answered, nil
}

// complete gives a request the path of a skill, and its method where it has none.
func (one *Candidate) complete(h *Handoff, skill string) {
	card, err := p2p.ReadCard(one.Card, len(one.Card)+1)
	if err != nil {
		card = p2p.Card{} // it has no skills that can be read
	}
	for _, s := range card.Skills {
		if skill != "" && s.Name != skill {
			continue
		}
		if h.Method == "" && len(s.Methods) > 0 {
			h.Method = s.Methods[0]
		}
		if h.Path = s.Path; h.Path == "" {
			skill = s.Name
		}
		break
	}
	if h.Path == "" {
		h.Path = "/" + url.PathEscape(skill)
	}
	if h.Path[0] != '/' {
		h.Path = "/" + h.Path
	}
}
