// Package listing is the JSON in which the directory is told over HTTP: PROTOCOL.md, The directory over HTTP.
package listing

import (
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
)

// Agents is the answer to GET /agents and to POST /agents/find.
type Agents struct {
	Agents []Agent `json:"agents"`
	Next   string  `json:"next,omitempty"` // what to ask for as after, where there are more

	LeftOut []string `json:"left_out,omitempty"` // of POST /agents/find, where all is too much: "schemas", which are metadata there, "descriptions", "agents"
}

// Agent is an agent as the directory has it. Lists are those of the [agora.Agent] that it was made of, and the other way round.
type Agent struct {
	ID           agora.AgentID     `json:"id"`
	Name         string            `json:"name"`
	Endpoint     string            `json:"endpoint,omitempty"`
	RegisteredAt time.Time         `json:"registered_at"`
	Status       agora.AgentStatus `json:"status,omitempty"`
	Dialect      string            `json:"dialect,omitempty"`
	Domain       string            `json:"domain,omitempty"`
	Description  string            `json:"description,omitempty"`
	Type         string            `json:"type,omitempty"`
	Version      string            `json:"version,omitempty"`
	Peer         string            `json:"peer,omitempty"`
	Addresses    []string          `json:"addresses,omitempty"`
	Capabilities []string          `json:"capabilities,omitempty"`
	Skills       []Skill           `json:"skills,omitempty"`
	Tools        []Skill           `json:"tools,omitempty"`
	Metadata     json.RawMessage   `json:"metadata,omitempty"`
}

// Skill is a skill or a tool of an agent.
type Skill struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// AgentOf returns an agent as it is told: when it registered to the second, and its dialect by name.
func AgentOf(a agora.Agent) Agent {
	return Agent{
		ID: a.ID, Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: a.RegisteredAt.UTC().Truncate(time.Second), Status: a.Status,
		Dialect: a.DialectName(), Domain: a.Domain, Description: a.Description, Type: a.Type, Version: a.Version,
		Peer: a.Peer, Addresses: a.Addresses, Capabilities: a.Capabilities,
		Skills: each(a.Skills, func(s agora.Skill) Skill { return Skill(s) }), Tools: each(a.Tools, func(s agora.Skill) Skill { return Skill(s) }), Metadata: a.Metadata,
	}
}

// Agent returns the agent that was told.
func (a *Agent) Agent() agora.Agent {
	return agora.Agent{
		ID: a.ID, Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: a.RegisteredAt, Status: a.Status, Dialect: a.Dialect, Domain: a.Domain,
		Description: a.Description, Type: a.Type, Version: a.Version, Peer: a.Peer, Addresses: a.Addresses, Capabilities: a.Capabilities,
		Skills: each(a.Skills, func(s Skill) agora.Skill { return agora.Skill(s) }), Tools: each(a.Tools, func(s Skill) agora.Skill { return agora.Skill(s) }), Metadata: a.Metadata,
	}
}

func each[A, B any](all []A, as func(A) B) (out []B) {
	for _, a := range all {
		out = append(out, as(a))
	}
	return out
}
