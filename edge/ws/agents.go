package ws

import (
	"bytes"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/wire"
)

// find answers who fits best, or with the whole card of the agent that the frame names. MESSAGE_TOO_LARGE for one that is too large for a frame.
func find(c *conn, f *wire.Frame) error {
	found, err := found(c, f)
	if err != nil {
		return err
	}
	agents, leftOut := fit(c, found)
	if f.To != "" && len(agents) == 0 {
		return errLargeCard
	}
	c.queue(&wire.Frame{Type: "agents.found", ID: f.ID, Listing: wire.Listing{Agents: agents, LeftOut: leftOut}})
	return nil
}

var errLargeCard = agora.Errorf(agora.MessageTooLarge, "the card is larger than a frame: agents.find tells of the agent without what is too much, and GET /agents/{id} all")

// fit returns agents as far as a frame has room for them, and what is left out.
func fit(c *conn, found []agora.Agent) (agents []wire.ListedAgent, leftOut []string) {
	var b []byte
	found, leftOut = directory.Fit(found, listing(c), func(a *agora.Agent) int {
		b = foundAgent(a).Append(b[:0])
		return len(b) + 1
	})
	agents = make([]wire.ListedAgent, len(found))
	for i := range found {
		agents[i] = foundAgent(&found[i])
	}
	return agents, leftOut
}

// found returns the agents that a frame looks for.
func found(c *conn, f *wire.Frame) ([]agora.Agent, error) {
	if f.To != "" {
		one, err := c.Actor.Directory().Card(c.out.Context(), agora.AgentID(f.To))
		return []agora.Agent{one}, err
	}
	limit := int(min(f.Limit, directory.MaxFound+1)) // more than that is refused
	found, err := c.Actor.Directory().Find(c.out.Context(), directory.Query{Skill: f.Skill, Goal: f.Goal, Limit: limit})
	for i := range found {
		found[i].Metadata = nil
	}
	return found, err
}

// foundAgent is an agent as agents.found has it.
func foundAgent(a *agora.Agent) wire.ListedAgent {
	return wire.ListedAgent{
		ID: string(a.ID), Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: a.RegisteredAt.UTC().Format(time.RFC3339),
		Status: string(a.Status), Dialect: a.DialectName(), Domain: a.Domain, Description: a.Description, Type: a.Type,
		Version: a.Version, Peer: a.Peer, Addresses: a.Addresses, Capabilities: a.Capabilities,
		Skills: wireSkills(a.Skills), Tools: wireSkills(a.Tools), Metadata: a.Metadata,
	}
}

func wireSkills(all []agora.Skill) (out []wire.Skill) {
	for _, s := range all {
		out = append(out, wire.Skill(s))
	}
	return out
}

// skills returns what a frame says of skills or tools; the frame's bytes may be used again then.
func skills(all []wire.Skill) (out []agora.Skill) {
	for _, s := range all {
		s.Schema = bytes.Clone(s.Schema)
		out = append(out, agora.Skill(s))
	}
	return out
}
