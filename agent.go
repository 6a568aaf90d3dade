package agora

import (
	"encoding/json"
	"time"
)

// Agent is what the directory knows of an agent.
type Agent struct {
	ID           AgentID
	Name         string          // for people; the id when it gave none
	Endpoint     string          // where it says it can be reached besides; may be empty
	Type         string          // as it registered; may be empty
	Capabilities []string        // as it registered
	Metadata     json.RawMessage // as it registered; an object or nil
	RegisteredAt time.Time       // when its session began, or it registered without one
	Dialect      string          // in which it registered; empty means Agora's own
	Domain       string          // that it works in; may be empty
	Description  string          // for people, and for who looks for an agent; may be empty
	Version      string          // of the agent; may be empty
	Skills       []Skill         // what it can do when it is asked
	Tools        []Skill         // what it offers to be called by name
	Peer         string          // its peer id, where it has one
	Addresses    []string        // at which its peer is reached, direct ones first
	Status       AgentStatus     // set by the directory, not by the agent
	Registration Registration    // the very bytes with which it registered, where its dialect has such
}

// Skill is something that an agent can do: a skill or a tool.
type Skill struct {
	Name        string
	Description string          // may be empty
	Schema      json.RawMessage // JSON Schema of what it takes; nil where none was given, or it was not asked for
}

// Registration is what an agent registered with, in the words of its dialect.
type Registration struct {
	Media string // media type of Body; empty where there is none
	Body  []byte
}

// AgentStatus says how an agent stands, and what its last change was.
type AgentStatus string

// The statuses. Online and Offline are those of an agent; the space agent.status tells all three.
const (
	Online  AgentStatus = "online"  // it has a session, its grace included, or is registered without one
	Offline AgentStatus = "offline" // it has neither
	Updated AgentStatus = "updated" // it is online as before, and its card has changed
)

// OwnDialect is the name of Agora's own dialect, that of relay and spaces.
const OwnDialect = "agora"

// DialectName returns the dialect of the agent, [OwnDialect] where it says none.
func (a *Agent) DialectName() string {
	if a.Dialect == "" {
		return OwnDialect
	}
	return a.Dialect
}
