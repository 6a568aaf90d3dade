package simcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// acts are what actors say for agents, at other edges than those of their sessions.
type acts struct {
	w *world

	all []*actor // guarded by the world's mu
}

// actor is one that says some things in turn, all in one place.
type actor struct {
	n    int
	as   *agent
	to   agora.Address
	said []*said
}

// said is one thing that an actor says.
type said struct {
	session int   // of its agent when it was begun
	moved   bool  // that had another session when it was over
	over    bool  // nothing of it is under way
	err     error // after which it may be stored or not; nil where it is
}

// act is what stands in the log of it.
type act struct {
	Actor int `json:"actor"`
	Nth   int `json:"nth"`
}

func newActs(w *world) scene { return &acts{w: w} }

func (s *acts) usual() string { return "acts" }

func (s *acts) steps() map[string]func(*dice) { return map[string]func(*dice){"acts": s.act} }

// act has one more actor speak, to an agent or in the space.
func (s *acts) act(d *dice) {
	x := &actor{as: s.w.anAgent(d), to: s.w.space}
	if d.between(0, 2) == 0 {
		x.to = s.w.anAgent(d).to()
	} else {
		x.as.tell(upward{verb: join, space: s.w.space.Space})
	}
	things := d.between(1, 6)
	s.w.mu.Lock()
	x.n = len(s.all)
	s.all = append(s.all, x)
	s.w.mu.Unlock()
	own := newDice(d.Uint64())
	s.w.goes("an actor", func(ctx context.Context) {
		for range things {
			if !s.say(ctx, x, own) {
				return
			}
		}
	})
}

// say says the next thing at random edges, under one name, until it is stored or can't be. It returns false where that
// is not known at last.
func (s *acts) say(ctx context.Context, x *actor, d *dice) bool {
	s.w.mu.Lock()
	t := &said{session: x.as.session}
	k := len(x.said)
	x.said = append(x.said, t)
	s.w.mu.Unlock()
	var err error
	for end := time.Now().Add(time.Minute); ; {
		e := s.w.anEdge(d)
		try, cancel := e.at(ctx)
		began := time.Now()
		err = s.sayOnce(try, e, x, k)
		if took := time.Since(began); took > answeredWithin {
			s.w.fail("actor %d for %s: act %d was answered after %v: %v", x.n, x.as.id, k, took, err)
		}
		lost := try.Err() != nil
		cancel()
		if err == nil || !lost && agora.AsError(err).Code != agora.Unavailable || time.Now().After(end) || !rest(ctx, d.millis(5, 100)) {
			break
		}
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	t.err, t.moved, t.over = err, t.session != x.as.session, true
	if err != nil {
		s.w.note("actor %d for %s: %d is not said: %v", x.n, x.as.id, k, err)
	}
	return err == nil
}

// answeredWithin is how long an act may go without an answer: half a minute, and as long as its edge may be frozen
// meanwhile.
const answeredWithin = 30*time.Second + 2*lease

func (s *acts) sayOnce(ctx context.Context, e *node, x *actor, k int) error {
	body, name := fmt.Appendf(nil, `{"actor":%d,"nth":%d}`, x.n, k), fmt.Sprintf("act-%d-%d", x.n, k)
	var err error
	if x.to.IsSpace() {
		_, err = e.actor.Do(ctx, x.as.id, edge.Command{Verb: edge.Publish, Space: x.to.Space, Data: body, ID: name})
	} else {
		_, err = e.actor.Do(ctx, x.as.id, edge.Command{Verb: edge.Send, Message: agora.Message{ID: name, Kind: agora.Request, To: agora.Address{Agent: x.to.Agent}, Body: body}})
	}
	return err
}

// missing implements scene: actors end by themselves.
func (s *acts) missing() string { return "" }

// judge implements scene: what actors have said stands in the log, once and in the order of each.
func (s *acts) judge() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, x := range s.all {
		var got, marked []int
		gap := false
		for _, m := range s.w.logs[x.to] {
			var what act
			gap = gap || m.Kind == agora.Gap
			if (m.Kind == agora.Request || m.Kind == agora.Event) && json.Unmarshal(m.Body, &what) == nil && what.Actor == x.n && isAct(&m) {
				if m.Again { // it may stand a second time
					marked = append(marked, what.Nth)
				} else {
					got = append(got, what.Nth)
				}
			}
		}
		if !gap {
			s.compare(x, got, marked)
		}
	}
}

// isAct reports whether a message is what an actor has said.
func isAct(m *agora.Message) bool {
	var keys map[string]json.RawMessage
	return json.Unmarshal(m.Body, &keys) == nil && keys["actor"] != nil
}

// compare compares what stands in the log of an actor with what it has said.
func (s *acts) compare(x *actor, got, marked []int) {
	if !slices.IsSorted(got) {
		s.w.failLocked("actor %d for %s: its acts stand as %v", x.n, x.as.id, got)
	}
	for k, t := range x.said {
		n := 0
		for _, nth := range got {
			if nth == k {
				n++
			}
		}
		// In a space an act is known again by its agent's session alone.
		twice := x.to.IsSpace() && (t.moved || s.w.lax)
		if n > 1 && !twice || n == 0 && t.err == nil && !slices.Contains(marked, k) {
			s.w.failLocked("actor %d for %s: act %d stands %d times in the log, %v", x.n, x.as.id, k, n, t.err)
		}
	}
}
