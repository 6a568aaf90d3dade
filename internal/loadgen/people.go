package loadgen

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire"
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
		r.room()
		return
	}
	s, n := r.cfg.Senders, r.cfg.Receivers
	for i := range s {
		at := i
		if s > n { // several send to one: they are at an edge, and it is at the next
			at = i % n
		}
		r.add(fmt.Sprintf("%s-s%d", r.name, i), at)
	}
	for i := range n {
		r.add(fmt.Sprintf("%s-r%d", r.name, i), i%s+1).watch = true
	}
	for i := range max(s, n) {
		to := r.agents[s+i%n].id
		r.addLine(r.agents[i%s], to, r.pair(i, to), 1)
	}
}

// add adds an agent at an edge; they are counted around.
func (r *Run) add(id string, at int) *agent {
	a := &agent{run: r, id: id, edge: at % len(r.cfg.Edges), shard: len(r.agents), next: map[int]uint64{}, joined: make(chan bool, 1)}
	r.agents = append(r.agents, a)
	return a
}

func (r *Run) addLine(from *agent, to string, f *wire.Frame, copies int) {
	l := &line{number: len(r.lines), from: from, to: to, frame: newTemplate(f), copies: int64(copies)}
	l.gate = gate{signs: 1, open: make(chan struct{}, 1)}
	if r.cfg.Kind == OneShot {
		l.gate.signs = 2 // its receipt, too
	}
	r.lines = append(r.lines, l)
}

// pair returns what is sent on the i-th line.
func (r *Run) pair(i int, to string) *wire.Frame {
	t := text(r.cfg.Size)
	if r.cfg.Kind != OneShot {
		return &wire.Frame{Type: "send_chunk", To: to, StreamID: streamID(i), Chunk: t}
	}
	return &wire.Frame{Type: "send", To: to, Payload: t, ID: string(t[1 : 1+StampSize])}
}

func streamID(i int) string { return "s" + strconv.Itoa(i) }

// connect connects all agents and begins to read.
func (r *Run) connect(ctx context.Context) error {
	var taken atomic.Bool
	return each(r.agents, func(a *agent) error {
		c, err := dialAgain(ctx, Target{Edge: r.cfg.Edges[a.edge], Agent: a.id, Access: r.cfg.Access}, &taken)
		if err != nil {
			return err
		}
		a.begin(c)
		return nil
	})
}

// dialAgain connects an agent; while the cluster says that it can't take it now, it tries again if
// the cluster has taken some.
func dialAgain(ctx context.Context, t Target, taken *atomic.Bool) (*Conn, error) {
	for i := 0; ; i++ {
		c, err := Dial(ctx, t)
		if err == nil {
			taken.Store(true)
			return c, nil
		}
		e, ok := errors.AsType[*agora.Error](err)
		if !ok || e.Code != agora.Unavailable || !taken.Load() || i == attempts || ctx.Err() != nil {
			return nil, err
		}
		pause.For(ctx, between)
	}
}

// begin starts the streams, or has the members join.
func (r *Run) begin(ctx context.Context) error {
	switch r.cfg.Kind {
	case Stream, stormKind:
		for i, l := range r.lines {
			start := &wire.Frame{Type: "send", To: l.to, StreamID: streamID(i), Stream: true}
			if err := l.from.conn.Write(AppendText(nil, start)); err != nil {
				return unavailable(l.from.id+" lost its connection", err)
			}
		}
	case FanOut:
		return r.join(ctx)
	}
	return nil
}

// finish ends the streams in order.
func (r *Run) finish() {
	if r.cfg.Kind != Stream && r.cfg.Kind != stormKind {
		return
	}
	for i, l := range r.lines {
		if l.from.conn != nil && !l.dead.Load() {
			end := &wire.Frame{Type: "send_end", To: l.to, StreamID: streamID(i)}
			_ = l.from.conn.Write(AppendText(nil, end)) // whoever lost its connection has ended it otherwise
		}
	}
}

// refused takes an error about something that was sent.
func (r *Run) refused(f wire.Frame) {
	if s, ok := find([]byte(f.RequestID)); ok {
		if l := r.line(s); l != nil {
			if l.never.Add(1); l.measures(s.number) {
				l.refused.Add(1)
			}
			l.pause.Store(now() + f.RetryAfterMS*int64(time.Millisecond))
			l.gate.through(l.gate.signs)
		}
		return
	}
	if len(f.StreamID) < 2 || f.From != "" {
		return
	}
	if i, err := strconv.Atoi(f.StreamID[1:]); err == nil && i < len(r.lines) {
		r.lines[i].kill()
	}
}

// kill ends a line for good.
func (l *line) kill() {
	l.dead.Store(true)
	l.gate.through(1 << 40) // its sender waits for nothing more
}

// each does something for all, as many at a time as connections are opened, and returns the first error.
func each[T any](all []T, f func(T) error) error { return some(all, dialing, f) }

// some does something for all, so many at a time, and returns the first error.
func some[T any](all []T, atOnce int, f func(T) error) (err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	failed := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return err != nil
	}
	for _, v := range all {
		slots <- struct{}{}
		if failed() {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if e := f(v); e != nil {
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					err = e
				}
			}
		})
	}
	wg.Wait()
	return err
}
