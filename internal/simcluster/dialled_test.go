package simcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/presence"
)

// dialled are agents that edges dial, in the name of one owner, and others that want what is theirs.
type dialled struct {
	w     *world
	nodes []*process
	died  *node // an edge that is killed once all is well; nil before
}

// addressee is what is known of what was said to a process.
type addressee struct {
	begun   bool     // its owner has registered it once
	session string   // that it had when all was well, before an edge died; empty before
	said    []string // what was stored for it
	doubted bool     // more may be stored, or a session of its be over
	ceded   bool     // another was given its address while that was free
}

const owner, rival = "owner", "rival"

func newDialled(w *world) scene {
	s := &dialled{w: w}
	for k := range 2 {
		s.nodes = append(s.nodes, newProcess(w, agora.AgentID(fmt.Sprint("n", k)), fmt.Sprintf("10.0.0.%d:%d", k+1, 1000)))
	}
	return s
}

// dialled returns the scene of agents that edges dial; nil where a history has none.
func (s *scenes) dialled() *dialled {
	for _, x := range s.all {
		if d, is := x.(*dialled); is {
			return d
		}
	}
	return nil
}

func (s *dialled) usual() string { return "says to a dialled agent" }

func (s *dialled) steps() map[string]func(*dice) {
	return map[string]func(*dice){
		"says to a dialled agent":   s.say,
		"a process stops":           s.restart,
		"registers again":           func(d *dice) { s.register(d, s.one(d)) },
		"a heartbeat":               s.heartbeat,
		"another wants its address": s.wantAddress,
		"another wants its session": s.wantSession,
		"its edge killed":           s.killHolder,
	}
}

func (s *dialled) one(d *dice) *process { return s.nodes[d.between(0, len(s.nodes)-1)] }

// find returns the session of a process, as an edge knows it.
func (s *dialled) find(ctx context.Context, e *node, p *process) (presence.Orphan, bool) {
	o, is, err := e.store.Dials.Find(ctx, agora.DefaultTenant, p.id)
	return o, is && err == nil
}

// register has the owner register a process.
func (s *dialled) register(d *dice, p *process) {
	e := s.w.anEdge(d)
	s.w.goes("a registration", func(ctx context.Context) {
		p.registering(1)
		err := s.registerBy(ctx, e, owner, p.id, p)
		p.registering(-1)
		s.w.say("%s is registered at %s: %v", p.id, e.id, err)
		if err == nil {
			s.w.mu.Lock()
			p.begun = true
			s.w.mu.Unlock()
		}
	})
}

func (s *dialled) registerBy(ctx context.Context, e *node, who string, id agora.AgentID, p *process) error {
	ctx, cancel := e.at(ctx)
	defer cancel()
	a, err := e.as(ctx, who)
	if err != nil {
		return err
	}
	return e.dials.Register(ctx, a, id, p.at)
}

// say stores some things for a process, one after the other, each under one name.
func (s *dialled) say(d *dice) {
	p := s.one(d)
	s.w.mu.Lock()
	begun := p.begun
	s.w.mu.Unlock()
	if !begun {
		s.register(d, p)
		return
	}
	for range d.between(1, 3) {
		s.w.mu.Lock()
		k := p.next
		p.next++
		s.w.mu.Unlock()
		e := s.w.anEdge(d)
		s.w.goes("a word to a dialled agent", func(ctx context.Context) { s.store(ctx, e, p, k) })
	}
}

// store stores one thing, by some other edge where the first can't.
func (s *dialled) store(ctx context.Context, e *node, p *process, k int) {
	m := agora.Message{ID: fmt.Sprint(p.id, "-", k), To: agora.Address{Agent: p.id}, Body: fmt.Appendf(nil, "%d", k)}
	for range 200 {
		try, cancel := e.at(ctx)
		_, err := e.actor.Do(try, "speaker", edge.Command{Verb: edge.Send, Message: m})
		cancel()
		if err == nil {
			s.w.mu.Lock()
			p.said = append(p.said, fmt.Sprintf("speaker %d", k))
			s.w.mu.Unlock()
			return
		}
		if code := agora.AsError(err).Code; code != agora.Unavailable && !errors.Is(err, context.Canceled) || !rest(ctx, 50*time.Millisecond) {
			break
		}
		e = s.w.living()[0]
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	p.doubted = true
}

// killHolder kills the edge that holds a process, which asks all others to go on, and is busy meanwhile.
func (s *dialled) killHolder(d *dice) {
	p := s.one(d)
	o, is := s.find(context.Background(), s.w.anEdge(d), p)
	for _, e := range s.w.living() {
		if !is || e.id != o.Holder.Edge {
			continue
		}
		s.w.say("FAULT %s is killed, which holds %s", e.id, o.Agent)
		s.w.startEdge(d.millis(-9000, 9000))
		p.silence(d.millis(0, 5000))
		s.w.kill(e, d.millis(0, 1000))
		for _, other := range s.w.living() {
			s.w.after(d.millis(0, 300), func() { s.beat(other, p) })
		}
		return
	}
}

// restart stops a process for a moment.
func (s *dialled) restart(d *dice) {
	p, away := s.one(d), d.millis(0, 1500)
	s.w.say("%s stops for %v", p.id, away)
	p.stop(true)
	s.w.after(away, func() { p.stop(false) })
}

func (s *dialled) heartbeat(d *dice) {
	s.beat(s.w.anEdge(d), s.one(d))
}

// beat has the owner tell an edge that a process lives: that edge adopts its session where no other one holds that.
func (s *dialled) beat(e *node, p *process) {
	s.w.goes("a heartbeat", func(ctx context.Context) {
		ctx, cancel := e.at(ctx)
		defer cancel()
		if a, err := e.as(ctx, owner); err == nil {
			s.w.say("heartbeat of %s at %s: %v", p.id, e.id, a.Adopt(ctx, p.id))
		}
	})
}

// wantAddress has another one ask to be dialled where a process is. The address is free where the owner's session is
// over, or presence has lost it.
func (s *dialled) wantAddress(d *dice) {
	s.wants(d, "address", func(ctx context.Context, e *node, p *process) error {
		free := s.isOver(e, p)
		err := s.registerBy(ctx, e, rival, p.rival(), p)
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		p.ceded = p.ceded || err == nil && (free || s.w.lax)
		return err
	})
}

// wantSession has another one ask an edge to adopt a process.
func (s *dialled) wantSession(d *dice) {
	s.wants(d, "session", func(ctx context.Context, e *node, p *process) error {
		ctx, cancel := e.at(ctx)
		defer cancel()
		a, err := e.as(ctx, rival)
		if err != nil {
			return err
		}
		return a.Adopt(ctx, p.id)
	})
}

// wants has another one get what is a process's: it must not, as long as its owner has a session for it.
func (s *dialled) wants(d *dice, what string, get func(context.Context, *node, *process) error) {
	e, p := s.w.anEdge(d), s.one(d)
	s.w.goes("a rival", func(ctx context.Context) {
		before, was := s.find(ctx, e, p)
		err := get(ctx, e, p)
		after, is := s.find(ctx, e, p)
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.w.note("another asks for the %s of %s at %s: %v", what, p.id, e.id, err)
		if was && is && before.Session == after.Session && before.Principal == owner && err == nil && !s.w.lax {
			s.w.failLocked("the %s of %s was given to another", what, p.id)
		}
	})
}

// missing implements scene: every process has one connection, and all that was stored for it, unless its address is
// rightly another's.
func (s *dialled) missing() string {
	if on := s.w.scenes.goingOn(); on != "" {
		return on + " goes on"
	}
	for _, p := range s.nodes {
		if !p.begun || p.doubted {
			continue
		}
		e := s.w.living()[0]
		o, is := s.find(context.Background(), e, p)
		if p.session != "" && (is && o.Session != p.session || !is && s.isOver(e, p)) {
			s.w.fail("the session of %s is over, as %s was killed", p.id, s.died.id)
		}
		if !is && s.isAnothers(e, p) {
			if by := p.connections(); len(by) != 1 {
				return fmt.Sprintf("%s has connections of %v", p.rival(), by)
			}
			continue
		}
		if !is {
			s.register(newDice(uint64(len(s.w.notes))), p) // its grace was over
			return fmt.Sprintf("%s has no session", p.id)
		}
		if by := p.connections(); len(by) != 1 {
			return fmt.Sprintf("%s has connections of %v, want one", p.id, by)
		}
		if got := p.got(); len(got) < len(p.said) && s.w.plan.Records > int64(len(p.said)) {
			return fmt.Sprintf("%s has %q of %q", p.id, got, p.said)
		}
		if s.died != nil && o.Holder.Edge == s.died.id {
			return fmt.Sprintf("%s has not gone on elsewhere", p.id)
		}
	}
	return s.die()
}

// judge implements scene: what came was stored, came in order and once, and the sessions of all are their owner's. Then
// they say goodbye.
func (s *dialled) judge() {
	for _, p := range s.nodes {
		got := p.got()
		for k, word := range got {
			if slices.Contains(got[:k], word) {
				s.w.fail("%s got %q twice", p.id, word)
			}
			if !slices.Contains(p.said, word) && !p.doubted {
				s.w.fail("%s got %q, which was not stored", p.id, word)
			}
		}
		for _, bad := range p.faults() {
			s.w.fail("%s: %s", p.id, bad)
		}
		if o, is := s.find(context.Background(), s.w.living()[0], p); is && !s.w.lax && o.Principal != owner {
			s.w.fail("%s is of %s", p.id, o.Principal)
		}
		p.stop(true)
	}
}
