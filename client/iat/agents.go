package iat

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
)

// AgentQuery says which agents of the directory are looked for. What is empty doesn't matter.
type AgentQuery struct {
	Dialect string
	Domain  string
}

// Agents returns the agents of the directory that fit, sorted by id. Of their tools and skills they have no schemas. Errors are those of [Client.Send].
func (c *Client) Agents(ctx context.Context, q AgentQuery) (all []agora.Agent, err error) {
	for after := ""; ; {
		var page struct {
			Agents []listed `json:"agents"`
			Next   string   `json:"next"`
		}
		if err := c.get(ctx, "/agents"+query("dialect", q.Dialect, "domain", q.Domain, "after", after), &page); err != nil {
			return nil, err
		}
		for _, a := range page.Agents {
			all = append(all, a.agent())
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// listed is an agent as a list has it.
type listed struct {
	ID           agora.AgentID     `json:"id"`
	Name         string            `json:"name"`
	Endpoint     string            `json:"endpoint"`
	RegisteredAt time.Time         `json:"registered_at"`
	Status       agora.AgentStatus `json:"status"`
	Dialect      string            `json:"dialect"`
	Domain       string            `json:"domain"`
	Description  string            `json:"description"`
	Type         string            `json:"type"`
	Version      string            `json:"version"`
	Peer         string            `json:"peer"`
	Addresses    []string          `json:"addresses"`
	Capabilities []string          `json:"capabilities"`
	Skills       []listedSkill     `json:"skills"`
	Tools        []listedSkill     `json:"tools"`
	Metadata     json.RawMessage   `json:"metadata"`
}

// listedSkill is a skill or a tool of a listed agent.
type listedSkill struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

func (l *listed) agent() agora.Agent {
	skills := func(all []listedSkill) (out []agora.Skill) {
		for _, s := range all {
			out = append(out, agora.Skill(s))
		}
		return out
	}
	return agora.Agent{
		ID: l.ID, Name: l.Name, Endpoint: l.Endpoint, RegisteredAt: l.RegisteredAt, Status: l.Status, Dialect: l.Dialect, Domain: l.Domain,
		Description: l.Description, Type: l.Type, Version: l.Version, Peer: l.Peer, Addresses: l.Addresses, Capabilities: l.Capabilities,
		Skills: skills(l.Skills), Tools: skills(l.Tools), Metadata: l.Metadata,
	}
}
