package simcluster

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// isOver reports whether presence has no session of a process, and can tell.
func (s *dialled) isOver(e *node, p *process) bool {
	_, is, err := e.store.Dials.Find(context.Background(), agora.DefaultTenant, p.id)
	return !is && err == nil
}

// rival is the agent as which another one registers a process.
func (p *process) rival() agora.AgentID { return "rival-of-" + p.id }

// isAnothers reports whether another one was given a process's address while that was free, and has it still: its owner
// can't have it back before that session is over.
func (s *dialled) isAnothers(e *node, p *process) bool {
	if !p.ceded {
		return false
	}
	o, is, err := e.store.Dials.Find(context.Background(), agora.DefaultTenant, p.rival())
	return is && err == nil && o.Dial.Address == p.at
}

// die kills an edge that holds a process, once all is well. All sessions go on.
func (s *dialled) die() string {
	if s.w.scenes.since() < 2*lease {
		return "it is not quiet yet"
	}
	for _, a := range s.w.agents {
		if miss := s.w.wanting(a); miss != "" {
			return miss
		}
	}
	if s.died != nil {
		return ""
	}
	holder := ""
	for _, p := range s.nodes {
		if o, is := s.find(context.Background(), s.w.living()[0], p); is && p.begun && !p.doubted {
			p.session, holder = o.Session, o.Holder.Edge
		}
	}
	k := slices.IndexFunc(s.w.living(), func(e *node) bool { return e.id == holder })
	if k < 0 {
		return ""
	}
	s.died = s.w.living()[k]
	s.w.startEdge(0)
	s.w.say("FAULT %s is killed, which holds agents that it has dialled", s.died.id)
	s.w.kill(s.died, 0)
	return "an edge has died"
}

// TestAnAddressThatPresenceLostWithItsEdgeIsAnothers has an edge die, and presence lose the session that it has
// dialled, before another one asks for the address: that one has it rightly, and the history ends well.
func TestAnAddressThatPresenceLostWithItsEdgeIsAnothers(t *testing.T) {
	const edges = 3
	first := func(draws ...int) uint64 { // dice that draw 0 last, of so many each
		for seed := uint64(0); ; seed++ {
			d, drawn := newDice(seed), 0
			for _, most := range draws {
				drawn = d.between(0, most)
			}
			if drawn == 0 {
				return seed
			}
		}
	}
	r := playOnce(nil, Plan{Seed: 1, Edges: edges, Agents: 3, Records: 4096, Losses: true, Tell: true, Scenes: []string{"dialled"}, Steps: []Step{
		{Does: "says to a dialled agent", Dice: first(1), Then: lease},
		{Does: "its edge killed", Dice: first(1)},
		{Does: "presence emptied", Then: 2 * lease},
		{Does: "another wants its address", Dice: first(edges-1, 1), Then: lease},
	}})
	for _, f := range r.Failures {
		t.Error(f)
	}
	given := func(line string) bool {
		return strings.Contains(line, "another asks for the address of n0") && strings.HasSuffix(line, "<nil>")
	}
	if !slices.ContainsFunc(r.Story, given) {
		t.Errorf("the address was not given to another:\n%s", strings.Join(r.Story, "\n"))
	}
}
