package simcluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// failovers are presence that falls back to an older copy, which does not know that an agent has moved: the edge to
// which it has moved continues with a connection that the agent leaves without a word, and nobody asks it to let go.
type failovers struct{ w *world }

func newFailovers(w *world) scene { return &failovers{w} }

func (s *failovers) usual() string { return "" }

func (s *failovers) steps() map[string]func(*dice) {
	return map[string]func(*dice){"presence forgets a move": s.move, "presence forgets a move again": s.move}
}

// move has an agent move, presence forget it, and the agent move once more.
func (s *failovers) move(d *dice) {
	a, to, then := s.w.anAgent(d), s.w.anEdge(d), s.w.anEdge(d)
	token := d.coin()
	s.w.goes("a failover", func(ctx context.Context) {
		old := s.w.dump()
		a.connect(to, true, 0)
		if !s.isAt(ctx, a, to) {
			return
		}
		s.w.say("FAULT presence fails over to a copy that does not know that %s has moved to %s", a.id, to.id)
		s.w.forgive()
		s.restore(a, old)
		s.w.mu.Lock()
		a.d, a.ready = nil, false // and its network is gone: the edge is told nothing
		s.w.mu.Unlock()
		if rest(ctx, 10*time.Millisecond) && !then.dead.Load() {
			a.connect(then, token, 0)
		}
	})
}

// isAt waits a little until an agent is welcomed at an edge.
func (s *failovers) isAt(ctx context.Context, a *agent, e *node) bool {
	for range 20 {
		if !rest(ctx, 20*time.Millisecond) {
			return false
		}
		s.w.mu.Lock()
		is := a.d != nil && a.d.e == e && a.ready
		s.w.mu.Unlock()
		if is {
			return true
		}
	}
	return false
}

// restore puts what presence knew of an agent in place of what it knows.
func (s *failovers) restore(a *agent, old map[string]copied) {
	ctx, tag := context.Background(), "{a:"+agora.EncodeToken(string(agora.DefaultTenant))+"."+agora.EncodeToken(string(a.id))+"}"
	now, err := s.w.memory.Keys(ctx, "*").Result()
	if err != nil {
		s.w.fail("presence: %v", err)
	}
	for _, k := range now {
		if _, was := old[k]; !was && strings.Contains(k, tag) {
			s.w.memory.Del(ctx, k)
		}
	}
	for k := range old {
		if strings.Contains(k, tag) {
			s.w.put(k, old[k])
		}
	}
}

// mostLeases is how many leases after all faults an edge may go on with a connection that its agent has left for
// another.
const mostLeases = 4

// missing implements scene: every edge has let go of the connections that agents have left for others.
func (s *failovers) missing() string {
	if on := s.w.scenes.goingOn(); on != "" {
		return on + " goes on"
	}
	for _, d := range s.w.every() {
		if !s.isLeft(d) {
			continue
		}
		if s.w.scenes.since() > mostLeases*lease {
			s.w.fail("%s goes on with a connection that %s has left for another", d.e.id, d.a.id)
		}
		return fmt.Sprintf("%s has a connection that %s has left", d.e.id, d.a.id)
	}
	return ""
}

// isLeft reports whether an edge has a connection of a session that has gone on by another.
func (s *failovers) isLeft(d *door) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.turn > 0 && d.a.d != d && d.a.ready && !d.closed && !d.ended && !d.gone && !d.e.dead.Load()
}

// judge implements scene: what agents got is everybody's.
func (s *failovers) judge() {}
