package simcluster

import (
	"context"
	"time"
)

// overflows are agents that are away while others fill the mailbox to which they wrote: what they say again when they
// come back has gone from the log, as far as it was there. They move on before all of it is said again.
type overflows struct{ w *world }

func newOverflows(w *world) scene { return &overflows{w} }

func (s *overflows) usual() string { return "overflow" }

func (s *overflows) steps() map[string]func(*dice) {
	return map[string]func(*dice){"overflow": func(d *dice) {
		if s.w.plan.Records < 100 {
			s.begin(d)
		}
	}}
}

// begin has an agent say something of which it hears nothing, as the answers of the log are lost, and then it is cut
// off.
func (s *overflows) begin(d *dice) {
	a, b, what := s.w.anAgent(d), s.w.anAgent(d), d.some(d.between(2, 8))
	killed, moves := d.coin(), []int{d.between(1, 10), d.between(1, 10), d.between(0, 40)}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if a == b || a.names == plainly || a.d == nil || !a.ready {
		return
	}
	was := a.d
	s.w.note("FAULT %s says something and is cut off, its edge %s killed: %t, and the mailbox of %s overflows", a.id, was.e.id, killed, b.id)
	hold(was.e.log, false, true)
	for _, k := range what {
		a.make(b.to(), k)
	}
	s.w.goes("an overflow", func(ctx context.Context) {
		rest(ctx, d.millis(1, 20))
		was.drop(0)
		was.e.log.Reset()
		if killed && !was.e.dead.Load() {
			s.w.startEdge(0) // first: others may end just now
			s.w.kill(was.e, 0)
		}
		s.fill(ctx, a, b)
		s.slow(a, 2*time.Millisecond)
		defer s.slow(a, 0)
		for k, pause := range moves {
			if live := s.w.living(); len(live) > 0 && ctx.Err() == nil {
				a.connect(live[k%len(live)], true, 0)
				rest(ctx, time.Duration(pause)*time.Millisecond)
			}
		}
	})
}

// slow has an agent say one thing after the other.
func (s *overflows) slow(a *agent, d time.Duration) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	a.paced = d
}

// fill has everybody but one write to another, a record each time, until its mailbox has lost what stood there.
func (s *overflows) fill(ctx context.Context, but, to *agent) {
	for range s.w.plan.Records + 3 {
		s.w.mu.Lock()
		for _, c := range s.w.agents {
			if c != but && c != to && c.began {
				c.make(to.to(), 0)
			}
		}
		s.w.mu.Unlock()
		rest(ctx, 3*time.Millisecond)
	}
}

// missing implements scene: nothing is waited for.
func (s *overflows) missing() string { return "" }

// judge implements scene: the logs are everybody's.
func (s *overflows) judge() {}
