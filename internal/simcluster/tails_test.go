package simcluster

import (
	"fmt"
	"time"

	"github.com/agora-relay/agora/internal/simlog"
)

// tails are the last words before a silence: they are stored, nobody learns of them, and nothing follows that would
// show that they are missing.
type tails struct {
	w     *world
	round int

	word *part // the last one; nil between two
	dies *node // the edge that has stored it, where that is to die; nil for none
}

func newTails(w *world) scene { return &tails{w: w} }

// lastWords is how many are said in a history.
const lastWords = 3

func (s *tails) usual() string { return "" }

func (s *tails) steps() map[string]func(*dice) { return nil }

// missing implements scene: once everything is quiet somebody says one thing, a few times, and it arrives.
func (s *tails) missing() string {
	switch {
	case s.w.scenes.since() < lease:
		return "it is not quiet yet"
	case s.word == nil:
		for _, a := range s.w.agents {
			if miss := s.w.wanting(a); miss != "" {
				return miss
			}
		}
		if s.round == lastWords {
			return ""
		}
		if !s.say() {
			return "nobody can say anything"
		}
	}
	s.w.mu.Lock()
	stored, arrived, failed := s.word.receipt, s.w.arrived[s.word.uid], s.word.failed
	s.w.mu.Unlock()
	switch {
	case failed && s.w.plan.Records < 100: // it was refused, as the mailbox has no room
		return s.next()
	case !stored:
		return fmt.Sprintf("the last word of %s is not stored", s.word.from.id)
	}
	if s.dies != nil && !s.dies.dead.Load() {
		s.w.say("FAULT %s is killed, which alone knows that something was stored", s.dies.id)
		s.w.kill(s.dies, 0)
		s.w.startEdge(0)
	}
	s.w.log.Lose(0)
	if !arrived {
		return fmt.Sprintf("the last word of %s to %s is stored, and does not arrive", s.word.from.id, s.word.lane.to.Name())
	}
	return s.next()
}

// next has more be said, or all be over.
func (s *tails) next() string {
	s.w.log.Lose(0)
	s.word = nil
	s.round++
	return "more is said"
}

// say has an agent say one thing to one that another edge serves. It is handed on to nobody: lost on its way, after
// which its edge may die as well, or stored by a leader that dies, of which nothing is heard.
func (s *tails) say() bool {
	w, seed := s.w, newDice(s.w.plan.Seed+uint64(s.round))
	from, to := seed.between(0, len(w.agents)-1), seed.between(0, len(w.agents)-1)
	for k := range w.agents {
		a, b := w.agents[(from+k)%len(w.agents)], w.agents[to]
		w.mu.Lock()
		apart := a != b && a.names != plainly && a.ready && b.ready && a.d != nil && b.d != nil && a.d.e != b.d.e
		w.mu.Unlock()
		if apart {
			s.sayTo(a, b)
			return true
		}
	}
	for _, e := range w.living() { // all who may are at one edge
		w.mu.Lock()
		b := w.agents[to]
		elsewhere := b.d == nil || b.d.e != e
		w.mu.Unlock()
		if elsewhere {
			b.connect(e, true, 0)
			break
		}
	}
	return false
}

// dying is how long a leader dies: long enough that what is said meanwhile is lost or stored by it.
const dying = 100 * time.Millisecond

func (s *tails) sayTo(a, b *agent) {
	w := s.w
	how := w.plan.Seed / 2 % 3
	if how == 2 {
		w.log.SetLeader("agent", simlog.Dying)
		w.after(dying, func() { w.log.SetLeader("agent", simlog.Well) })
	} else {
		w.log.Lose(100)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.dies = nil; how == 1 && a.d != nil {
		s.dies = a.d.e
	}
	a.make(b.to(), 0)
	s.word = w.parts[len(w.parts)-1]
	w.note("%s says its last word to %s: %d", a.id, b.id, s.word.uid)
}

// judge implements scene: what agents got is everybody's.
func (s *tails) judge() {}
