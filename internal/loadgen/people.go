package loadgen

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// dialing is how many connections are opened at a time.
const dialing = 64

// Once one agent is connected, others that can't be yet try again, so often and after so long.
const (
	attempts = 40
	between  = 500 * time.Millisecond
)

// people makes the agents and lines of the run.
func (r *Run) people() {
	if r.cfg.Kind == FanOut {
		r.members()
		return
	}
	s, n := r.cfg.Senders, r.cfg.Receivers
	for i := range s {
		at := i
		if s > n { // several send to one: they are at a server, and it is at the next
			at = i % n
		}
		r.add(Sends, i, at)
	}
	receives := Receives
	if r.cfg.Kind == stormKind {
		receives = Returns
	}
	for i := range n {
		r.add(receives, i, i%s+1).watch = true
	}
	signs := int64(1)
	if r.cfg.Kind == OneShot {
		signs = 2 // its receipt, too
	}
	for i := range max(s, n) {
		r.addLine(r.agents[i%s], r.agents[s+i%n].id, 1, signs)
	}
}

// members makes the members of the space, the first of which publish.
func (r *Run) members() {
	watched := map[int]bool{}
	for i := range r.cfg.Receivers {
		a := r.add(Member, i, i)
		a.watch = !watched[a.server]
		watched[a.server] = true
	}
	for i := range r.cfg.Senders {
		l := r.addLine(r.agents[i], r.name, int64(len(r.agents)), int64(len(watched)))
		if r.cfg.Everyone {
			l.gate.signs, l.all = 1, newEveryone(len(r.agents), r.cfg.Window, r.cfg.Burst)
		}
	}
}

// add adds the i-th agent with a role, at a server; they are counted around.
func (r *Run) add(role Role, i, at int) *agent {
	a := &agent{
		run: r, id: fmt.Sprintf("%s-%s%d", r.name, role, i), role: role,
		server: at % r.cfg.System.Servers(), shard: len(r.agents), next: map[int]uint64{},
	}
	r.agents = append(r.agents, a)
	return a
}

func (r *Run) addLine(from *agent, to string, copies, signs int64) *line {
	l := &line{number: len(r.lines), from: from, to: to, copies: copies}
	l.gate = gate{signs: signs, open: make(chan struct{}, 1)}
	r.lines = append(r.lines, l)
	return l
}

// connect connects all agents, has members join their space, and begins to read.
func (r *Run) connect(ctx context.Context) error {
	var taken atomic.Bool
	return each(r.agents, func(a *agent) error {
		c, err := dialAgain(ctx, &taken, func() (Agent, error) { return r.cfg.System.Dial(ctx, a.role, a.id, a.server) })
		if err != nil {
			return err
		}
		a.conn = c
		if r.cfg.Kind == FanOut {
			if err := r.join(ctx, a); err != nil {
				return err
			}
		}
		a.begin(c)
		return nil
	})
}

// join has an agent join the space. Those with a line publish there.
func (r *Run) join(ctx context.Context, a *agent) error {
	frames, err := a.conn.Open(ctx, Way{Kind: FanOut, To: r.name, Line: a.shard, Text: Text(r.cfg.Size)})
	if err == nil && a.shard < len(r.lines) {
		r.lines[a.shard].frames = frames
	}
	return err
}

// open opens the lines between agents.
func (r *Run) open(ctx context.Context) (err error) {
	if r.cfg.Kind == FanOut {
		return nil // whoever joined has
	}
	for _, l := range r.lines {
		if l.frames, err = l.from.conn.Open(ctx, r.way(l)); err != nil {
			return err
		}
	}
	return nil
}

// way says what a line between agents is.
func (r *Run) way(l *line) Way {
	kind := r.cfg.Kind
	if kind == stormKind {
		kind = Stream
	}
	return Way{Kind: kind, To: l.to, Line: l.number, Text: Text(r.cfg.Size)}
}

// dialAgain connects an agent; while the system can't take it now, it tries again if
// the system has taken some.
func dialAgain(ctx context.Context, taken *atomic.Bool, dial func() (Agent, error)) (Agent, error) {
	for i := 0; ; i++ {
		c, err := dial()
		if err == nil {
			taken.Store(true)
			return c, nil
		}
		if !passing(err) || !taken.Load() || i == attempts || ctx.Err() != nil {
			return nil, err
		}
		pause.For(ctx, between)
	}
}

// passing reports whether an agent that could not connect may be able to later.
func passing(err error) bool {
	if e, ok := errors.AsType[*agora.Error](err); ok {
		return e.Code == agora.Unavailable
	}
	return !errors.Is(err, ErrNone)
}
