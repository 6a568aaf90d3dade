package client

import (
	"bytes"
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// Agents returns the directory: every agent that has a session now, sorted by id. It asks for it page by page.
func (c *Client) Agents(ctx context.Context) ([]agora.Agent, error) {
	all := []agora.Agent{}
	err := c.pages(ctx, "list", func(f *wire.Frame) {
		for _, a := range f.Agents {
			at, _ := time.Parse(time.RFC3339, a.RegisteredAt)
			all = append(all, agora.Agent{ID: agora.AgentID(a.ID), Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: at})
		}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// pages asks for a listing until its end. Each page is taken before the next is asked for.
func (c *Client) pages(ctx context.Context, list string, take func(*wire.Frame)) error {
	for after := ""; ; {
		f, err := c.sender.call(ctx, &wire.Frame{Type: list, Listing: wire.Listing{After: after}})
		if err != nil {
			return err
		}
		take(f)
		if after = f.Next; after == "" {
			return nil
		}
	}
}

// Query says which agents are looked for. Exactly one of Skill and Goal is set.
type Query struct {
	Skill string // name of a skill or tool; where nobody has one of that name, its words count
	Goal  string // what is to be done, in words
	Limit int    // agents that are wanted at most; the edge's own bound if 0
}

// FindAgents returns the agents that fit best, the best first; none where nobody does. They have no schemas, and where
// they are too large together no long descriptions: AgentCard has those.
func (c *Client) FindAgents(ctx context.Context, q Query) ([]agora.Agent, error) {
	return c.find(ctx, &wire.Frame{Type: "agents.find", Skill: q.Skill, Goal: q.Goal, Limit: uint64(max(0, q.Limit))})
}

// AgentCard returns all that an agent says of itself, schemas included, but for those that a frame has no room for
// (limits.frame). AGENT_NOT_FOUND where it is not in the directory.
func (c *Client) AgentCard(ctx context.Context, id string) (agora.Agent, error) {
	found, err := c.find(ctx, &wire.Frame{Type: "agents.find", To: id})
	if err == nil && len(found) == 0 {
		err = agora.UnknownAgent(agora.AgentID(id))
	}
	if err != nil {
		return agora.Agent{}, err
	}
	return found[0], nil
}

func (c *Client) find(ctx context.Context, ask *wire.Frame) ([]agora.Agent, error) {
	f, err := c.sender.call(ctx, ask)
	if err != nil {
		return nil, err
	}
	all := make([]agora.Agent, 0, len(f.Agents))
	for _, a := range f.Agents {
		at, _ := time.Parse(time.RFC3339, a.RegisteredAt)
		all = append(all, agora.Agent{
			ID: agora.AgentID(a.ID), Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: at, Type: a.Type, Capabilities: a.Capabilities,
			Metadata: bytes.Clone(a.Metadata), Dialect: a.Dialect, Domain: a.Domain, Description: a.Description, Version: a.Version,
			Peer: a.Peer, Addresses: a.Addresses, Status: agora.AgentStatus(a.Status), Skills: skills(a.Skills), Tools: skills(a.Tools),
		})
	}
	return all, nil
}

// skills returns skills or tools of a frame, whose bytes may be used again then.
func skills(all []wire.Skill) (out []agora.Skill) {
	for _, s := range all {
		s.Schema = bytes.Clone(s.Schema)
		out = append(out, agora.Skill(s))
	}
	return out
}

func wireSkills(all []agora.Skill) (out []wire.Skill) {
	for _, s := range all {
		out = append(out, wire.Skill(s))
	}
	return out
}

// SpaceInfo is what the list of spaces says of one; Type is "public" or "system".
type SpaceInfo struct {
	Name    string
	Type    string
	Members int
}

// Spaces returns the spaces that there are, sorted by name.
func (c *Client) Spaces(ctx context.Context) ([]SpaceInfo, error) {
	all := []SpaceInfo{}
	err := c.pages(ctx, "space.list", func(f *wire.Frame) {
		for _, s := range f.Spaces {
			all = append(all, SpaceInfo{Name: s.ID, Type: s.Type, Members: s.MemberCount})
		}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// CreateSpace makes a public space, where the first join does not.
func (c *Client) CreateSpace(ctx context.Context, space string) error {
	_, err := c.sender.call(ctx, &wire.Frame{Type: "space.create", Space: space})
	return err
}
