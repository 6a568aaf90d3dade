package ws

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/agora-relay/agora"
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
func list(c *conn, f *wire.Frame) error {
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
func listSpaces(c *conn, f *wire.Frame) error {
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
