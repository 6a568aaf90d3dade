package measure

import (
	"context"
	"time"

	"github.com/agora-relay/agora/internal/loadgen"
)

// Shape says who streams to whom: each receiver gets one stream, and the senders share those among them.
type Shape struct {
	Senders, Receivers int
	Idle               int // agents that are connected besides, and say nothing
}

// config returns what all loads of the engine have in common.
func (c Config) config(t Target, kind string) loadgen.Config {
	return loadgen.Config{
		Kind: kind, System: t, Size: c.Size, Window: c.Window, Burst: max(1, c.Window/8),
		Warmup: c.Warm, Duration: c.Time, Settle: c.Patience,
	}
}

// Saturate has every sender write whatever its receivers let it.
func Saturate(ctx context.Context, t Target, shape Shape, cfg Config) (Result, error) {
	return streams(ctx, t, shape, cfg.config(t, loadgen.Stream))
}

// Pace sends so many texts a second in all, over the streams in turn, each at its
// own moment. A text counts as late from the moment it was due, even when it
// could be written only later: a system that holds the load up can't hide it.
func Pace(ctx context.Context, t Target, shape Shape, rate int, cfg Config) (Result, error) {
	c := cfg.config(t, loadgen.Stream)
	c.Rate = float64(rate)
	return streams(ctx, t, shape, c)
}

func streams(ctx context.Context, t Target, shape Shape, c loadgen.Config) (Result, error) {
	if shape.Idle > 0 {
		crowd, err := loadgen.Gather(ctx, loadgen.CrowdConfig{System: t, Name: "idle", Agents: shape.Idle})
		if err != nil {
			return Result{}, err
		}
		defer crowd.Close()
	}
	c.Senders, c.Receivers = shape.Senders, shape.Receivers
	r, _, err := run(ctx, t, c)
	return r, err
}

// FanOut has one agent publish to a space of so many members, all servers having as many, as fast as these let it.
// Rates count deliveries.
func FanOut(ctx context.Context, t Target, members int, cfg Config) (Result, error) {
	c := cfg.config(t, loadgen.FanOut)
	c.Senders, c.Receivers, c.Everyone = 1, members, true
	r, _, err := run(ctx, t, c)
	return r, err
}

// OneShots has one agent send messages to another, so many under way, each until
// it and its receipt have come. Rates count messages, and their delay is from write to receipt.
func OneShots(ctx context.Context, t Target, underWay int, cfg Config) (Result, error) {
	c := cfg.config(t, loadgen.OneShot)
	c.Senders, c.Receivers, c.Window, c.Burst = 1, 1, underWay, 1
	r, full, err := run(ctx, t, c)
	r.late(full.Receipt)
	return r, err
}

// run puts a load of the engine on a system.
func run(ctx context.Context, t Target, c loadgen.Config) (Result, loadgen.Result, error) {
	load, err := loadgen.Start(ctx, c)
	if err != nil {
		return Result{}, loadgen.Result{}, err
	}
	full := load.Measure(ctx, t)
	load.Close()
	r := Result{
		Rate: full.PerSecond, ServerCPU: full.Server.PerMessage, EdgeCPU: full.Server.Edges, ClientCPU: full.Client.PerMessage,
		RSS: float64(full.Server.RSS), Sent: full.Total, Lost: full.Lost, Disordered: full.Twice,
	}
	r.faults(full.Errors, full.Cut+full.Gaps, full.First)
	if c.Rate > 0 {
		r.late(full.Latency)
	}
	return r, full, ctx.Err()
}

// late enters how late things were, where that was measured.
func (r *Result) late(l *loadgen.Latency) {
	if l != nil {
		r.P50, r.P99 = float64(l.P50), float64(l.P99)
	}
}

// faults enters what a server complained of, and what else went wrong.
func (r *Result) faults(errors map[string]int64, others int64, first string) {
	r.Faults, r.Fault = others, first
	for _, n := range errors {
		r.Faults += n
	}
}

// Idle connects agents that say nothing, and returns the memory that all servers, and those that agents connect to,
// have more than before, per agent: resident, some seconds after the last has connected.
func Idle(ctx context.Context, t Target, agents int, cfg Config) (Result, error) {
	before, began := t.Usage(), time.Now()
	crowd, err := loadgen.Gather(ctx, loadgen.CrowdConfig{System: t, Name: "idle", Agents: agents})
	if err != nil {
		return Result{}, err
	}
	defer crowd.Close()
	took := time.Since(began)
	err = pause(ctx, cfg.Warm+cfg.Time)
	after, n := t.Usage(), float64(agents)
	return Result{
		Rate:       n / took.Seconds(),
		ServerCPU:  us(after.CPU-before.CPU, n),
		EdgeCPU:    us(after.Edges-before.Edges, n),
		Memory:     float64(after.RSS-before.RSS) / n,
		EdgeMemory: float64(after.Held-before.Held) / n,
		RSS:        float64(after.RSS),
		Faults:     crowd.Lost(),
	}, err
}

// Storm cuts the connections of all receivers at once, has so many texts sent to
// each while they are away, and lets all of them return in the same moment, each to another server than before. Rate
// counts those that have got what they missed, per second until the last had it;
// the quantiles are how long that took from the moment on, connecting included.
func Storm(ctx context.Context, t Target, shape Shape, missed int, cfg Config) (Result, error) {
	full, err := loadgen.Storm(ctx, loadgen.StormConfig{
		System: t, Senders: shape.Senders, Agents: shape.Receivers, Missed: missed, Size: cfg.Size, Settle: max(cfg.Patience, stormTime),
		Move: true, Stored: func(ctx context.Context) error { return Quiet(ctx, t) },
	}, t, func(string) {})
	if err != nil {
		return Result{}, err
	}
	n := float64(full.Whole)
	r := Result{Rate: n / full.Seconds, RSS: float64(full.Server.RSS), Sent: full.Expected, Lost: full.Lost, Disordered: full.Twice}
	cpu := func(per float64) float64 { return per * float64(full.Received) / max(n, 1) }
	r.ServerCPU, r.EdgeCPU, r.ClientCPU = cpu(full.Server.PerMessage), cpu(full.Server.Edges), cpu(full.Client.PerMessage)
	r.faults(full.Errors, full.Cut+full.Gaps, full.First)
	r.late(full.CaughtUp)
	return r, nil
}

// stormTime is how long a storm is watched: who has not got all it missed by then is not counted.
const stormTime = 30 * time.Second
