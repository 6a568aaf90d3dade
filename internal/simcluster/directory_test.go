package simcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/directory"
)

// watched is what agents say of themselves, and what those who watch the directories of edges are told.
type watched struct {
	w *world

	// Guarded by the world's mu.
	unsure  map[*agent]bool // whose edge may not have heard
	watches []*watching
	cards   int
}

// watching is one that watches the directory of an edge.
type watching struct {
	e    *node
	told map[agora.AgentID]string // names of who is there, as it was told
}

func newDirectory(w *world) scene {
	return &watched{w: w, unsure: map[*agent]bool{}}
}

func (s *watched) usual() string { return "changes its card" }

func (s *watched) steps() map[string]func(*dice) {
	return map[string]func(*dice){"changes its card": s.change, "watches": s.watch, "looks": s.look}
}

// change has an agent say something else of itself.
func (s *watched) change(d *dice) {
	a := s.w.anAgent(d)
	s.w.mu.Lock()
	s.cards++
	a.card = fmt.Sprint(a.id, " as of ", s.cards)
	s.w.mu.Unlock()
	s.tell(a)
}

// tell has an agent give its card.
func (s *watched) tell(a *agent) {
	s.w.mu.Lock()
	s.unsure[a] = true
	s.w.mu.Unlock()
	a.tell(upward{verb: does, do: func(ctx context.Context, x *edge.Session) {
		s.w.mu.Lock()
		name := a.card
		s.w.mu.Unlock()
		err := x.Update(ctx, agora.Agent{ID: a.id, Name: name}, false)
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		if err == nil && a.card == name {
			delete(s.unsure, a)
		}
	}})
}

// look asks an edge for its directory, which begins to keep one.
func (s *watched) look(d *dice) {
	e := s.w.anEdge(d)
	s.w.goes("a look", func(ctx context.Context) {
		ctx, cancel := e.at(ctx)
		defer cancel()
		_, _ = e.actor.Directory().All(ctx) // it may be unavailable
	})
}

// watch has one more watch the directory of an edge, until that is no more.
func (s *watched) watch(d *dice) {
	s.begin(s.w.anEdge(d))
}

func (s *watched) begin(e *node) {
	x := &watching{e: e, told: map[agora.AgentID]string{}}
	s.w.mu.Lock()
	s.watches = append(s.watches, x)
	s.w.mu.Unlock()
	s.w.running.Go(func() {
		ctx, cancel := e.at(s.w.scenes.ctx)
		defer cancel()
		watch, err := e.actor.Directory().Watch(ctx)
		for err != nil && rest(ctx, 100*time.Millisecond) {
			watch, err = e.actor.Directory().Watch(ctx)
		}
		if err != nil {
			return
		}
		defer watch.Close()
		for {
			changes, err := watch.Next(ctx)
			if err != nil {
				return
			}
			s.w.mu.Lock()
			s.told(x, changes)
			s.w.mu.Unlock()
		}
	})
}

// told takes changes that a watch tells: each follows from what it has told before.
func (s *watched) told(x *watching, changes []directory.Change) {
	for _, c := range changes {
		if _, there := x.told[c.Agent.ID]; there != (c.Kind != directory.Added) {
			s.w.failLocked("the directory of %s tells that %s is changed (%d), which was there: %v", x.e.id, c.Agent.ID, c.Kind, there)
		}
		if x.told[c.Agent.ID] = c.Agent.Name; c.Kind == directory.Removed {
			delete(x.told, c.Agent.ID)
		}
	}
}

// missing implements scene: every edge shows, and tells, the agents that are there with what they have said last of
// themselves.
func (s *watched) missing() string {
	s.w.mu.Lock()
	again := slices.Collect(maps.Keys(s.unsure))
	watches := slices.Clone(s.watches)
	s.w.mu.Unlock()
	if len(again) > 0 {
		for _, a := range again {
			s.tell(a)
		}
		return "an agent has not given its card"
	}
	for _, e := range s.w.living() {
		if !slices.ContainsFunc(watches, func(x *watching) bool { return x.e == e }) {
			s.begin(e)
		}
		all, err := e.actor.Directory().All(context.Background())
		if err != nil {
			return fmt.Sprintf("%s shows no directory: %v", e.id, err)
		}
		shown := map[agora.AgentID]string{}
		for _, a := range all {
			shown[a.ID] = a.Name
		}
		if miss := s.differs(shown); miss != "" {
			return fmt.Sprintf("%s shows %s", e.id, miss)
		}
	}
	return s.untold()
}

// untold says what a watch at an edge that lives has not told yet; empty for nothing.
func (s *watched) untold() string {
	for _, x := range s.watches {
		if x.e.dead.Load() {
			continue
		}
		s.w.mu.Lock()
		shown := maps.Clone(x.told)
		s.w.mu.Unlock()
		if miss := s.differs(shown); miss != "" {
			return fmt.Sprintf("a watch at %s tells %s", x.e.id, miss)
		}
	}
	return ""
}

// differs says how what is shown differs from what is so; empty where it does not.
func (s *watched) differs(shown map[agora.AgentID]string) string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	there := 0
	for _, a := range s.w.agents {
		if a.ready {
			there++
			if shown[a.id] != a.card {
				return fmt.Sprintf("%s as %q, which is %q", a.id, shown[a.id], a.card)
			}
		}
	}
	if len(shown) != there && !slices.Contains(s.w.plan.Scenes, "dialled") {
		return fmt.Sprintf("%d agents, and %d are there: %v", len(shown), there, shown)
	}
	return ""
}

// judge implements scene: everybody has left, and no edge shows, or has told, that anybody is there.
func (s *watched) judge() {
	s.w.await("every directory is empty", func() string {
		for _, e := range s.w.living() {
			all, err := e.actor.Directory().All(context.Background())
			if err != nil || len(all) > 0 {
				return fmt.Sprintf("%s shows %d agents: %v", e.id, len(all), err)
			}
		}
		return s.untold()
	})
}
