package ws

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/wire"
)

// bindAtConnect binds the connection to the id in its URL. Failing that, the
// agent learns why, and the connection is closed.
func bindAtConnect(c *conn, h *hello) {
	if !c.out.Enter() {
		return
	}
	defer c.out.Leave()
	err := h.err
	if err == nil {
		err = bind(c, h.Hello, nil)
	}
	if err != nil {
		e := agora.AsError(err)
		c.refuse(&wire.Frame{}, e)
		c.turnOut(e)
	}
}

// register binds the connection, or changes the card of the agent it is bound to.
func register(c *conn, s *edge.Session, f *wire.Frame) error {
	if s != nil {
		return update(c, s, f)
	}
	err := bind(c, edge.Hello{
		Card: cardIn(f), Resume: f.ResumeToken, LastSeq: f.LastSeq, HasLast: f.HasLastSeq,
		Spaces: f.Positions, Receipts: f.Receipts, Heartbeat: f.Type == "agent.register", MaxFrame: int(f.MaxFrame),
	}, f)
	if e := agora.AsError(err); err != nil && e.Code == agora.AgentExists {
		c.refuse(f, e)
		c.turnOut(e)
		return nil
	}
	return err
}

// bind opens the session, answers, and lets deliveries flow, once it is the connection's turn. f is the frame
// that asked for it, nil when the URL did.
func bind(c *conn, h edge.Hello, f *wire.Frame) error {
	defer c.door.cfg.Turns.Take()()
	h.Conn, h.Admission, h.MaxFrame = c.door.ids.name(), c.Admission, c.limitFrames(h.MaxFrame)
	h.Numbers = h.Resume != ""
	s, w, err := c.Actor.Open(c.out.Context(), h, c)
	if err != nil {
		return err
	}
	c.out.Session.Store(s)
	c.unwatch()
	answer := registered(s, f)
	answer.ResumeToken, answer.HeartbeatInterval = w.ResumeToken, w.Heartbeat.Seconds()
	answer.LastSeq, answer.HasLastSeq, answer.Resumed = w.LastSeq, true, w.Resumed
	answer.Expires = unix(w.Expires)
	answer.NextN, answer.SpaceNextN = nextNumbers(w.Next)
	c.queue(&answer)
	s.Begin()
	return nil
}

// nextNumbers returns what Welcome.Next says of agents and of spaces, as objects of JSON; nil of none.
func nextNumbers(next map[agora.Address]uint64) (agents, spaces json.RawMessage) {
	toAgents, toSpaces := map[string]uint64{}, map[string]uint64{}
	for to, n := range next {
		if to.IsSpace() {
			toSpaces[to.Name()] = n
		} else {
			toAgents[to.Name()] = n
		}
	}
	if len(toAgents) > 0 {
		agents, _ = json.Marshal(toAgents) // of texts and numbers
	}
	if len(toSpaces) > 0 {
		spaces, _ = json.Marshal(toSpaces)
	}
	return agents, spaces
}

func update(c *conn, s *edge.Session, f *wire.Frame) error {
	if s.Agent() != agora.AgentID(f.AgentID) {
		return agora.Errorf(agora.InvalidRequest, "this connection is bound to another agent id")
	}
	if err := s.Update(c.out.Context(), cardIn(f), f.Type == "agent.register"); err != nil {
		return err
	}
	answer := registered(s, f)
	c.queue(&answer)
	return nil
}

// registered returns the answer in the dialect of the frame that asked.
func registered(s *edge.Session, f *wire.Frame) wire.Frame {
	if f != nil && f.Type == "register" {
		return wire.Frame{Type: "registered", ID: string(s.Agent())}
	}
	answer := wire.Frame{Type: "agent.registered", Agent: &wire.Agent{ID: string(s.Agent()), ConnectionID: s.Conn()}}
	if f != nil {
		answer.ID = f.ID
	}
	return answer
}

// cardIn returns what a register or agent.register frame says of its agent.
func cardIn(f *wire.Frame) agora.Agent {
	a := agora.Agent{ID: agora.AgentID(f.AgentID), Name: f.Name, Endpoint: f.Endpoint}
	if f.Agent != nil {
		a.Type, a.Capabilities = f.Agent.Type, f.Agent.Capabilities
		a.Metadata = bytes.Clone(f.Agent.Metadata)
		a.Domain, a.Description = f.Agent.Domain, f.Agent.Description
		a.Skills, a.Tools = skills(f.Agent.Skills), skills(f.Agent.Tools)
		a.Name = cmp.Or(a.Name, metadataString(a.Metadata, "name"))
		a.Endpoint = cmp.Or(a.Endpoint, metadataString(a.Metadata, "endpoint"))
	}
	a.Name = cmp.Or(a.Name, f.AgentID)
	return a
}

// metadataString returns a member of metadata where it is a string.
func metadataString(metadata json.RawMessage, key string) (value string) {
	var members map[string]json.RawMessage // not a struct: its keys would match in any case
	if json.Unmarshal(metadata, &members) != nil || json.Unmarshal(members[key], &value) != nil {
		return ""
	}
	return value
}
