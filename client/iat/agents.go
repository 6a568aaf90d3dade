package iat

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/listing"
)

// AgentQuery says which agents of the directory are looked for. What is empty doesn't matter.
type AgentQuery struct {
	Dialect string
	Domain  string
}

// Agents returns the agents of the directory that fit, sorted by id. Of their tools and skills they have no schemas.
// Errors are those of [Client.Send].
func (c *Client) Agents(ctx context.Context, q AgentQuery) (all []agora.Agent, err error) {
	for after := ""; ; {
		var page listing.Agents
		if err := c.get(ctx, "/agents"+query("dialect", q.Dialect, "domain", q.Domain, "after", after), &page); err != nil {
			return nil, err
		}
		for _, a := range page.Agents {
			all = append(all, a.Agent())
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}
