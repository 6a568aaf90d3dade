package simcluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agora-relay/agora/edge"
)

// drains are edges that are asked to end, as those are that a newer one replaces: a successor starts, and who is
// connected is told to go elsewhere.
type drains struct {
	w *world

	// Guarded by the world's mu.
	sent   map[*agent]time.Time // when those were told to go who have not been welcomed since
	ending []*node
}

func newDrains(w *world) scene { return &drains{w: w, sent: map[*agent]time.Time{}} }

func (s *drains) usual() string { return "an edge is busy" }

func (s *drains) steps() map[string]func(*dice) {
	return map[string]func(*dice){
		"an edge is asked to end": s.drain,
		"an edge is busy": func(d *dice) {
			if s.w.chatter(d, s.w.anEdge(d)); d.between(0, 5) == 0 {
				s.drain(d)
			}
		},
	}
}

// drain has an edge end within a time, once its successor has started.
func (s *drains) drain(d *dice) {
	e, within := s.w.anEdge(d), d.millis(300, 8000)
	s.w.startEdge(d.millis(-9000, 9000))
	s.w.say("%s is asked to end within %v", e.id, within)
	s.w.mu.Lock()
	var there []*door
	for _, a := range s.w.agents {
		if a.ready && a.d != nil && a.d.e == e {
			there = append(there, a.d)
		}
	}
	s.ending = append(s.ending, e)
	s.w.mu.Unlock()
	e.dead.Store(true) // nobody turns to it any more
	s.w.zombies.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		how := e.node.Drain(ctx)
		if ctx.Err() == nil {
			s.untold(e, there)
		}
		s.w.say("%s ends: %+v", e.id, how)
		e.close()
		e.gone.Store(true)
	})
}

// untold looks for connections that an edge still has that is done with telling everybody to go.
func (s *drains) untold(e *node, there []*door) {
	for _, d := range there {
		d.mu.Lock()
		open := !d.closed && !d.ended && !d.gone
		d.mu.Unlock()
		if open {
			s.w.fail("%s ends, and %s was not told", e.id, d.a.id)
		}
	}
}

// sentOn implements traveller: who is told to go connects to another edge, when it was told to.
func (s *drains) sentOn(a *agent, d *door, n *edge.Notice) {
	d.mu.Lock()
	bye := d.silent
	d.mu.Unlock()
	if bye {
		return
	}
	s.sent[a] = time.Now()
	s.w.note("%s is told to leave %s, and to come back in %v", a.id, d.e.id, n.After)
	k := s.w.count()
	s.w.goes("somebody who was sent on", func(ctx context.Context) {
		if !rest(ctx, n.After) {
			return
		}
		s.w.mu.Lock()
		free := a.d == nil || a.d == d
		s.w.mu.Unlock()
		if live := s.w.living(); free {
			a.connect(live[k%len(live)], true, 0)
		}
	})
}

// welcomed implements traveller: the session of who was sent on and is soon back continues.
func (s *drains) welcomed(a *agent, d *door, w *edge.Welcome) {
	at, was := s.sent[a]
	delete(s.sent, a)
	if was && d.hello.Resume != "" && !w.Resumed && time.Since(at) < grace/2 && !s.w.lax {
		s.w.failLocked("%s was told to come back, and its session is over %v later", a.id, time.Since(at))
	}
}

// missing implements scene: those that were asked to end have ended, and all who were sent on are back.
func (s *drains) missing() string {
	s.w.mu.Lock()
	k := slices.IndexFunc(s.ending, func(e *node) bool { return !e.gone.Load() })
	s.w.mu.Unlock()
	if k >= 0 {
		return fmt.Sprintf("%s has not ended", s.ending[k].id)
	}
	for _, a := range s.w.agents {
		if miss := s.w.wanting(a); miss != "" {
			return miss
		}
	}
	return ""
}

// judge implements scene: what agents got is everybody's.
func (s *drains) judge() {}
