package ws

import (
	"bytes"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/wire"
)

// find answers who fits best, or with the whole card of the agent that the frame names.
func (v *verbs) find(f *wire.Frame) error {
	var found []agora.Agent
	var err error
	if f.To != "" {
		var one agora.Agent
		if one, err = v.Actor.Directory().Card(v.context(), agora.AgentID(f.To)); err == nil {
			found = []agora.Agent{one}
		}
	} else {
		limit := int(min(f.Limit, directory.MaxFound+1)) // more than that is refused
		found, err = v.Actor.Directory().Find(v.context(), directory.Query{Skill: f.Skill, Goal: f.Goal, Limit: limit})
	}
	if err != nil {
		return err
	}
	agents := make([]wire.ListedAgent, len(found))
	for i, a := range found {
		agents[i] = foundAgent(&a)
		if f.To != "" {
			agents[i].Metadata = a.Metadata
		}
	}
	v.out.queue(&wire.Frame{Type: "agents.found", ID: f.ID, Agents: agents})
	return nil
}

// foundAgent is an agent as agents.found has it.
func foundAgent(a *agora.Agent) wire.ListedAgent {
	return wire.ListedAgent{
		ID: string(a.ID), Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: a.RegisteredAt.UTC().Format(time.RFC3339),
		Status: string(a.Status), Dialect: a.DialectName(), Domain: a.Domain, Description: a.Description, Type: a.Type,
		Version: a.Version, Peer: a.Peer, Addresses: a.Addresses, Capabilities: a.Capabilities,
		Skills: wireSkills(a.Skills), Tools: wireSkills(a.Tools),
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
