package ws

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/internal/budget"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire"
)

// plainFrame is what clients take whose libraries have a bound of their own, where frames may be larger.
const plainFrame = 1 << 20

// listing returns how many bytes what a frame lists has at most.
func listing(c *conn) int { return roomIn(min(c.frameSize(), plainFrame)) }

// around is what may stand around the body of a frame at most.
const around = 8 << 10

// roomIn returns how much of a frame may be what it is for.
func roomIn(frame int) int { return max(frame-around, frame/2) }

// list answers with a page of the directory.
func list(c *conn, _ *edge.Session, f *wire.Frame) error {
	all, err := c.Actor.Directory().Select(c.out.Context(), directory.Filter{After: agora.AgentID(f.After)})
	if err != nil {
		return err
	}
	answer := &wire.Frame{Type: "agents", ID: f.ID}
	var more bool
	var b []byte
	room := listing(c)
	answer.Agents, more = budget.Page(all, math.MaxInt, room, func(a agora.Agent) (wire.ListedAgent, int) {
		l := wire.ListedAgent{ID: string(a.ID), Name: a.Name, Endpoint: a.Endpoint, RegisteredAt: a.RegisteredAt.UTC().Format(time.RFC3339)}
		if b = l.Append(b[:0]); len(b) > room { // it alone would be too much
			l.Endpoint = ""
			b = l.Append(b[:0])
		}
		return l, len(b) + 1
	})
	if more {
		answer.Next = answer.Agents[len(answer.Agents)-1].ID
	}
	c.queue(answer)
	return nil
}

// listSpaces answers with a page of the spaces.
func listSpaces(c *conn, _ *edge.Session, f *wire.Frame) error {
	all, err := c.Actor.Spaces(c.out.Context())
	if err != nil {
		return err
	}
	answer := &wire.Frame{Type: "space.list", ID: f.ID}
	var more bool
	var b []byte
	answer.Spaces, more = budget.Page(behind(all, f.After), math.MaxInt, listing(c), func(s presence.Space) (wire.ListedSpace, int) {
		l := wire.ListedSpace{ID: s.Name, Type: s.Type, MemberCount: s.Members}
		b = l.Append(b[:0])
		return l, len(b) + 1
	})
	if more {
		answer.Next = answer.Spaces[len(answer.Spaces)-1].ID
	}
	c.queue(answer)
	return nil
}

// behind goes through those of spaces, sorted by name, that come behind one.
func behind(all []presence.Space, after string) iter.Seq[presence.Space] {
	return func(yield func(presence.Space) bool) {
		for _, s := range all {
			if s.Name > after && !yield(s) {
				return
			}
		}
	}
}

// members returns the members of a space as far as a frame has room for them, the joiner always, and what is left out.
func members(c *conn, joiner agora.AgentID, all []agora.AgentID) (members, leftOut []string) {
	members, more := budget.Page(slices.Values(all), len(all), listing(c), func(id agora.AgentID) (string, int) {
		return string(id), 2*len(id) + 3 // in JSON each byte of an id takes two at most
	})
	if !more {
		return members, nil
	}
	if !slices.Contains(members, string(joiner)) {
		members[len(members)-1] = string(joiner)
	}
	return members, []string{"members"}
}

// find answers who fits best, or with the whole card of the agent that the frame names. MESSAGE_TOO_LARGE for one that is too large for a frame.
func find(c *conn, _ *edge.Session, f *wire.Frame) error {
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
