package simcluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/simlog"
)

// trials are what fails alone, once all else is well: then it is known how soon all is well again.
type trials struct {
	w *world

	// Guarded by the world's mu.
	begun   bool
	resumed map[*agent]bool // whether its session went on when it was welcomed last
}

func newTrials(w *world) scene { return &trials{w: w, resumed: map[*agent]bool{}} }

func (s *trials) usual() string { return "" }

func (s *trials) steps() map[string]func(*dice) {
	return map[string]func(*dice){"log stops": func(d *dice) {
		away := d.millis(10, 4000)
		s.w.say("FAULT the log's server stops for %v", away)
		s.w.log.Stops(true)
		s.w.after(away, func() { s.w.log.Stops(false) })
	}}
}

// missing implements scene: each trial is played, and comes to its end.
func (s *trials) missing() string {
	if s.w.scenes.since() < 2*lease {
		return "it is not quiet yet"
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !s.begun {
		s.begun = true
		s.w.goes("a trial", s.play)
	}
	return ""
}

// play plays one trial after the other.
func (s *trials) play(ctx context.Context) {
	all := []func(context.Context, *agent, *agent){s.lose, s.restartLog, s.lapse, s.die}
	if s.w.plan.Losses {
		all = append(all, s.empty)
	}
	for k, try := range all {
		a, b := s.pair(k)
		if s.isQuiet(ctx); ctx.Err() != nil || s.w.failed() {
			return
		}
		try(ctx, a, b)
	}
	s.isQuiet(ctx)
}

// pair returns an agent that sends again what has no receipt, and another one.
func (s *trials) pair(k int) (a, b *agent) {
	all := s.w.agents
	for n := range all {
		a, b = all[(k+n)%len(all)], all[(k+n+1)%len(all)]
		if a.names != plainly {
			break
		}
	}
	return a, b
}

// isQuiet waits until everybody is there, and has everything.
func (s *trials) isQuiet(ctx context.Context) {
	s.within(ctx, soon, "all is well again", func() string {
		for _, a := range s.w.agents {
			if miss := s.w.wanting(a); miss != "" {
				return miss
			}
		}
		return ""
	})
}

// within fails the history unless nothing is missing within a time.
func (s *trials) within(ctx context.Context, d time.Duration, what string, missing func() string) {
	for began := time.Now(); ; {
		miss := missing()
		if miss == "" || s.w.failed() {
			return
		}
		if time.Since(began) > d {
			s.w.fail("%v passed before %s: %s", d, what, miss)
			return
		}
		if !rest(ctx, 10*time.Millisecond) {
			return
		}
	}
}

// says has an agent say one thing, and returns it.
func (s *trials) says(a, b *agent) *part {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	a.make(b.to(), 0)
	p := s.w.parts[len(s.w.parts)-1]
	s.w.note("%s says %d to %s", a.id, p.uid, b.id)
	return p
}

// unstored says that something is not known to be stored; empty where it is.
func (s *trials) unstored(p *part) string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if p.receipt {
		return ""
	}
	return fmt.Sprintf("message %d of %s is not known to be stored", p.uid, p.from.id)
}

// lose loses one record, or its answer: it is sent again soon, long before anybody gives it up.
func (s *trials) lose(ctx context.Context, a, b *agent) {
	first := s.says(a, b)
	s.within(ctx, soon, "a first word is stored", func() string { return s.unstored(first) })
	s.w.say("FAULT a record is lost")
	s.w.log.SetLeader("agent", simlog.Silent)
	p := s.says(a, b)
	rest(ctx, 20*time.Millisecond)
	s.w.log.SetLeader("agent", simlog.Well)
	s.within(ctx, givesUp*9/10, "a record that was lost was sent again", func() string { return s.unstored(p) })
}

// restartLog stops the log, and has everybody speak meanwhile.
func (s *trials) restartLog(ctx context.Context, _, _ *agent) {
	d := newDice(s.w.plan.Seed)
	s.w.say("FAULT the log's server stops")
	s.w.log.Stops(true)
	for k, a := range s.w.agents {
		s.says(a, s.w.agents[(k+1)%len(s.w.agents)])
	}
	rest(ctx, d.millis(10, 4000))
	s.w.log.Stops(false)
	s.w.say("and is back")
}

// lapse cuts an edge off from presence for longer than a lease: it serves nobody any more, as others may.
func (s *trials) lapse(ctx context.Context, a, b *agent) {
	s.w.mu.Lock()
	e := a.d.e
	s.w.mu.Unlock()
	s.w.say("FAULT %s can't reach presence", e.id)
	e.pres.Cut()
	if rest(ctx, lease+lease/10); e.node.Ready() == nil {
		s.w.fail("%s says that it is ready, and has no lease", e.id)
	}
	p := s.says(a, b)
	rest(ctx, lease/10)
	s.w.mu.Lock()
	if p.receipt {
		s.w.failLocked("%s has stored message %d of %s, and has no lease", e.id, p.uid, a.id)
	}
	s.w.mu.Unlock()
	e.pres.Mend()
}

// die kills an edge: those who are there are welcome elsewhere long before its lease is over.
func (s *trials) die(ctx context.Context, a, _ *agent) {
	s.w.startEdge(0)
	s.w.mu.Lock()
	e := a.d.e
	here := slices.DeleteFunc(slices.Clone(s.w.agents), func(a *agent) bool { return a.d == nil || a.d.e != e })
	s.w.mu.Unlock()
	s.w.say("FAULT %s is killed", e.id)
	s.w.kill(e, 0)
	s.within(ctx, lease*2/3, fmt.Sprintf("agents of %s are welcome elsewhere", e.id), func() string { return s.away(here) })
}

// away has agents that are away connect to some edge, and names one that is not welcome yet; empty for none.
func (s *trials) away(all []*agent) (miss string) {
	live := s.w.living()
	for k, a := range all {
		s.w.mu.Lock()
		gone, ready := a.d == nil || a.d.e.dead.Load(), a.ready
		s.w.mu.Unlock()
		if gone {
			a.connect(live[k%len(live)], true, 0)
		}
		if gone || !ready {
			miss = fmt.Sprintf("%s is away", a.id)
		}
	}
	return miss
}

// empty empties presence, and has an agent move before the edge that it leaves can tell presence of it: its session
// continues.
func (s *trials) empty(ctx context.Context, a, _ *agent) {
	s.w.mu.Lock()
	from := a.d.e
	to := s.w.edges[slices.IndexFunc(s.w.edges, func(e *node) bool { return !e.dead.Load() && e != from })]
	s.w.forget()
	s.w.note("FAULT presence lost everything, %s can't reach it, and %s moves to %s", from.id, a.id, to.id)
	s.w.mu.Unlock()
	from.pres.Cut()
	if err := s.w.memory.FlushAll(ctx).Err(); err != nil {
		s.w.fail("presence: %v", err)
	}
	a.connect(to, true, 0)
	rest(ctx, lease/3)
	from.pres.Mend()
	s.isQuiet(ctx)
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !s.resumed[a] {
		s.w.failLocked("the session of %s is over, as presence had lost it", a.id)
	}
}

// sentOn implements traveller: nobody is sent on by a trial.
func (s *trials) sentOn(*agent, *door, *edge.Notice) {}

// welcomed implements traveller.
func (s *trials) welcomed(a *agent, _ *door, w *edge.Welcome) { s.resumed[a] = w.Resumed }

// judge implements scene: what agents got is everybody's.
func (s *trials) judge() {}
