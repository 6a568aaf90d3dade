package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// StormConfig says what a storm is. Agents and Missed are required, and System or Edges.
type StormConfig struct {
	System  System        // what carries it; Agora, with the two fields below, if nil
	Edges   []string      // WebSocket addresses; agents are spread over them
	Access                // of every agent
	Agents  int           // those that are cut off and return
	Senders int           // agents that stay and send; one for 200 agents if zero
	Missed  int           // parts of a stream that each agent misses meanwhile
	Size    int           // bytes of each; 100 if zero
	Dialing int           // agents that connect at a time; all at once if zero
	Spread  time.Duration // over which they begin to return, evenly; all in the same instant if zero
	Settle  time.Duration // how long each step may take
	Move    bool          // agents return to the next server

	// Stored returns once the servers have what was missed; nil: the last part of each stream asks for a receipt.
	Stored func(context.Context) error

	Live     int           // streams of other agents, which go on meanwhile and are measured
	LiveRate float64       // chunks a second of all these
	Calm     time.Duration // for which they are measured before the others are cut off, once these have been connected for as long; 5s if zero
}

// stormKind is the verb of a storm's result.
const stormKind = "storm"

func (c StormConfig) config() Config {
	senders := c.Senders
	if senders == 0 {
		senders = (c.Agents + 199) / 200
	}
	return Config{
		Kind: stormKind, System: c.System, Edges: c.Edges, Access: c.Access, Senders: senders, Receivers: c.Agents, Size: c.Size,
		Duration: 1, Settle: c.Settle,
	}
}

// Check tells what makes no sense, nil where all does.
func (c StormConfig) Check() error {
	switch {
	case c.Agents < 1 || c.Missed < 1:
		return errors.New("at least one agent must miss at least one part")
	case c.Senders < 0 || c.Dialing < 0:
		return errors.New("neither senders nor those that connect at a time can be below 0")
	case c.Live < 0 || c.Live > 0 && !(c.LiveRate > 0):
		return errors.New("streams that go on need a rate above 0")
	case c.Calm < 0:
		return errors.New("streams can't be measured for less than no time")
	case c.Settle <= 0:
		return errors.New("the time for each step must be above 0")
	}
	return c.config().Check()
}

// StormResult is what a storm came to. Times are in microseconds, from when the
// first agent tried to return.
type StormResult struct {
	Verb      string           `json:"verb"`
	Run       string           `json:"run"` // begins the ids of its agents
	Agents    int              `json:"agents"`
	Senders   int              `json:"senders"`
	Missed    int              `json:"missed_each"`
	Size      int              `json:"size"`
	Returned  int64            `json:"returned"`   // agents that are connected again
	Whole     int64            `json:"caught_up"`  // agents that have got all they missed
	Seconds   float64          `json:"duration_s"` // until the last had, or the time was up
	Expected  int64            `json:"expected"`   // arrivals
	Received  int64            `json:"received"`
	PerSecond float64          `json:"per_s"`
	Connected *Latency         `json:"connected_us"`
	CaughtUp  *Latency         `json:"caught_up_us"`
	Server    *Usage           `json:"server"` // null: not measured
	Client    Usage            `json:"client"`
	Live      *LiveResult      `json:"live,omitempty"` // null: no streams went on
	Twice     int64            `json:"duplicated"`
	Skipped   int64            `json:"missed"` // passed over by a later one
	Gaps      int64            `json:"gaps"`
	Cut       int64            `json:"lost_connections"`
	Errors    map[string]int64 `json:"errors,omitempty"`
	First     string           `json:"first_error,omitempty"`
	Lost      int64            `json:"-"` // arrivals that have not come
}

// Failed tells whether an agent has not got all that it missed, once and in order.
func (r StormResult) Failed() bool {
	return r.Whole != int64(r.Agents) || r.Twice > 0 || r.Skipped > 0 || r.Cut > 0 || r.Live != nil && r.Live.Lost > 0
}

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
