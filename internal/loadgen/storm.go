package loadgen

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// storm is a run's storm.
type storm struct {
	last  uint64       // number of the last part that is missed
	whole atomic.Int64 // agents that have got it
	began atomic.Int64 // when the agents began to return; Ticks
	shard shard        // of when they were whole
}

// Storm connects agents, cuts all their connections, has each of them miss parts of a stream until the cluster has
// stored them, and has them return all at once. It returns when each has caught up, or a step took too long, which
// the result shows, or ctx ended. It fails where not all agents could be connected, or what they miss not be stored.
func Storm(ctx context.Context, cfg StormConfig, servers Watched, tell func(step string)) (StormResult, error) {
	if err := cfg.Check(); err != nil {
		return StormResult{}, err
	}
	r := newRun(cfg.config())
	r.storm = &storm{last: uint64(cfg.Missed - 1)}
	r.storm.shard.late = newHistogram()
	defer r.Close()
	if err := r.gather(ctx); err != nil {
		return StormResult{}, err
	}
	tell(fmt.Sprintf("%d agents connected", cfg.Agents))
	others, err := cfg.calmly(ctx)
	if err != nil {
		return StormResult{}, err
	}
	tell("cutting them off")
	r.cutAll()
	if err := r.miss(ctx, cfg.Stored); err != nil {
		return StormResult{}, err
	}
	tell(fmt.Sprintf("each missed %d parts; all return", cfg.Missed))
	if err := others.begin(ctx); err != nil {
		return StormResult{}, err
	}
	before, self := servers.Usage(), selfUsage()
	connected := r.comeBack(ctx, cfg)
	took := time.Duration(now() - r.storm.began.Load())
	out := r.stormResult(took, before, servers.Usage(), selfUsage()-self)
	out.Live = others.over()
	out.Missed, out.Connected, out.Returned = cfg.Missed, connected.latency(), connected.counts().total
	return out, nil
}

// gather connects all and starts the streams, until each agent has heard of its own.
func (r *Run) gather(ctx context.Context) error {
	r.people()
	r.window(0, math.MaxInt64)
	if err := r.connect(ctx); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	r.prime(ctx)
	return r.until(ctx, "agents have heard of their stream", r.heard)
}

// until waits until as many as there are lines are done.
func (r *Run) until(ctx context.Context, what string, done func() int64) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Settle)
	defer cancel()
	for done() < int64(len(r.lines)) {
		if ctx.Err() != nil {
			return agora.Errorf(agora.Timeout, "after %v only %d of %d %s", r.cfg.Settle, done(), len(r.lines), what)
		}
		pause.For(ctx, time.Millisecond)
	}
	return nil
}

// cutAll breaks the connection of every receiver.
func (r *Run) cutAll() {
	for _, a := range r.agents[r.cfg.Senders:] {
		_ = a.conn.Cut() // its reader ends in any case
		a.reader.Wait()
	}
}

// miss sends what the agents miss, and returns when that is stored.
func (r *Run) miss(ctx context.Context, stored func(context.Context) error) error {
	err := each(r.lines, func(l *line) (err error) {
		for l.sent.Load() < int64(r.storm.last) && !l.dead.Load() {
			l.send(r.meter, now())
		}
		if stored == nil {
			w := r.way(l)
			w.Receipt = true
			if l.frames, err = l.from.conn.Open(ctx, w); err != nil {
				return err
			}
		}
		l.send(r.meter, now())
		return nil
	})
	if err != nil {
		return err
	}
	if stored != nil {
		return stored(ctx)
	}
	return r.until(ctx, "streams are stored", func() int64 { return r.receipts.counts().total })
}

// comeBack has all agents return, and waits until each has caught up. It returns when they were connected.
func (r *Run) comeBack(ctx context.Context, cfg StormConfig) *meter {
	connected := newMeter()
	connected.from.Store(0)
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Settle)
	defer cancel()
	dialing := cfg.Dialing
	if dialing == 0 {
		dialing = cfg.Agents
	}
	r.storm.began.Store(now())
	var begun atomic.Int64
	_ = some(r.agents[r.cfg.Senders:], dialing, func(a *agent) error { // who could not return is counted
		pause.For(ctx, cfg.Spread*time.Duration(begun.Add(1)-1)/time.Duration(cfg.Agents))
		if cfg.Move {
			a.server = (a.server + 1) % r.cfg.System.Servers()
		}
		c, err := r.resume(ctx, a)
		if err != nil {
			r.notes.lost(a.id, err)
			return nil
		}
		connected.record(connected.shard(a.shard), r.storm.began.Load(), now(), true)
		a.begin(c)
		return nil
	})
	for r.storm.whole.Load() < int64(cfg.Agents) && ctx.Err() == nil {
		pause.For(ctx, time.Millisecond)
	}
	return connected
}

// resume connects an agent again, and again while the system can't take it, until ctx ends.
func (r *Run) resume(ctx context.Context, a *agent) (Agent, error) {
	for {
		c, err := r.cfg.System.Resume(ctx, a.conn, a.server)
		if err == nil || !passing(err) || ctx.Err() != nil {
			return c, err
		}
		pause.For(ctx, between/5)
	}
}

// passed takes a part that an agent has got.
func (s *storm) passed(r *Run, number uint64, at int64) {
	if number == s.last {
		r.meter.note(&s.shard, s.began.Load(), at)
		s.whole.Add(1)
	}
}

func (r *Run) stormResult(took time.Duration, before, after *Look, self time.Duration) StormResult {
	base := r.result(took, before, after, self)
	out := StormResult{
		Verb: stormKind, Run: r.name, Agents: base.Receivers, Senders: base.Senders, Size: base.Size,
		Whole: r.storm.whole.Load(), Seconds: took.Seconds(),
		Expected: base.Expected, Received: base.Received, Lost: base.Lost,
		Twice: base.Twice, Skipped: base.Missed, Gaps: base.Gaps, Cut: base.Cut, Errors: base.Errors, First: base.First,
	}
	out.PerSecond = float64(out.Received) / took.Seconds()
	s := &r.storm.shard
	s.mu.Lock()
	out.CaughtUp = summary(s.late)
	s.mu.Unlock()
	out.Client = usage(self, out.Received)
	out.Server = spent(before, after, out.Received)
	return out
}
