package simcluster

import (
	"context"
	"slices"

	"github.com/agora-relay/agora"
)

// isOver reports whether presence has no session of a process, and can tell.
func (s *dialled) isOver(e *node, p *process) bool {
	_, is, err := e.store.Dials.Find(context.Background(), agora.DefaultTenant, p.id)
	return !is && err == nil
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
