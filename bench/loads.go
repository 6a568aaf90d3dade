package main

import (
	"context"
	"fmt"
	"time"

	"github.com/agora-relay/agora/bench/internal/measure"
	"github.com/agora-relay/agora/internal/loadgen"
)

// pace is the rate of the paced load, of all streams together: it nearly fills two processors. The same is offered at
// slower paces by name, where no system has to wait for a processor.
const pace = 10_000

// kind is a load that can be put on a system.
type kind struct {
	name    string
	about   string
	unit    string        // what its rate counts
	main    bool          // run unless told otherwise
	fresh   bool          // needs a system that has done nothing before
	agora   bool          // makes sense for Agora alone
	resumes bool          // needs a system whose clients can resume
	aip     bool          // calls by AIP
	memory  bool          // tells memory per agent
	setup   time.Duration // about how long it takes besides warm-up and measuring
	run     func(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error)
}

// loads lists every load, in the order in which they are run.
func loads() []kind {
	all := []kind{
		{name: "saturated-200", about: "saturation, 50 senders to 200 receivers", unit: "chunks", main: true, setup: time.Second, run: saturate(50, 200)},
		{name: "saturated-1000", about: "saturation, 1,000 senders to 1,000 receivers", unit: "chunks", main: true, setup: 2 * time.Second, run: saturate(1000, 1000)},
		{name: "paced", about: "10,000 chunks/s over 1,000 streams", unit: "chunks", main: true, setup: 2 * time.Second, run: paced(pace)},
		{name: "fanout", about: "one publisher, one space of 1,000 members", unit: "deliveries", main: true, setup: 5 * time.Second, run: fanOut},
		{name: "oneshot-1", about: "one-shots between one pair, each after the receipt of the one before", unit: "receipts", setup: time.Second, run: oneShots(1)},
		{name: "oneshot-64", about: "one-shots between one pair, 64 without a receipt", unit: "receipts", setup: time.Second, run: oneShots(64)},
		{name: "ask-1", about: "an agent asks another one, again and again", unit: "answers", agora: true, setup: time.Second, run: asks(1)},
		{name: "ask-16", about: "16 agents ask 16 others, again and again", unit: "answers", agora: true, setup: time.Second, run: asks(16)},
		{name: "idle", about: "5,000 agents that say nothing", unit: "connects", fresh: true, memory: true, setup: 5 * time.Second, run: idle},
		{name: "storm", about: "1,000 agents return at once, each to 100 chunks that it missed", unit: "resumes", fresh: true, resumes: true, setup: 5 * time.Second, run: storm},
	}
	all = append(all, aipLoads()...)
	for _, rate := range []int{2500, 5000} {
		all = append(all, kind{
			name: fmt.Sprintf("pace-%d", rate), about: fmt.Sprintf("%d chunks/s over 1,000 streams", rate), unit: "chunks", setup: 2 * time.Second, run: paced(rate),
		})
	}
	for _, n := range []int{100, 1000, 5000, 15000} {
		setup := time.Second + time.Duration(n)*time.Millisecond
		all = append(all,
			kind{
				name: fmt.Sprintf("crowd-%d", n), about: fmt.Sprintf("saturation, 50 senders to 50 receivers among %d agents, the others idle", n), unit: "chunks",
				fresh: true, agora: true, setup: setup, run: crowd(n),
			},
			kind{
				name: fmt.Sprintf("spread-%d", n), about: fmt.Sprintf("saturation, 50 senders to all the others of %d agents, %d chunks under way to each", n, few), unit: "chunks",
				fresh: true, agora: true, setup: 2 * setup, run: spread(n),
			})
	}
	return all
}

// aipLoads are those of systems that carry calls of AIP.
func aipLoads() []kind {
	return []kind{
		{name: "tool-1", about: "a program that calls a tool again and again", unit: "answers", aip: true, run: tools(1, 1)},
		{name: "tool-64", about: "8 programs that call a tool, 8 times at once each", unit: "answers", aip: true, run: tools(8, 8)},
		{name: "tool-64-of-1", about: "a program that calls a tool, 64 times at once", unit: "answers", aip: true, run: tools(1, 64)},
		{name: "session-1", about: "a session of 1 KiB messages that come back", unit: "messages", aip: true, run: sessions(measure.Talk{Programs: 1, Each: 1, Size: 1 << 10})},
		{name: "session-16", about: "16 such sessions, of 4 programs", unit: "messages", aip: true, run: sessions(measure.Talk{Programs: 4, Each: 4, Size: 1 << 10})},
		{name: "session-1m", about: "a session of 1 MiB messages that come back", unit: "messages", aip: true, run: sessions(measure.Talk{Programs: 1, Each: 1, Size: 1 << 20})},
		{name: "nodes", about: "1,000 nodes that nobody calls, at one edge", unit: "registrations", aip: true, fresh: true, memory: true, setup: 20 * time.Second, run: nodes()},
	}
}

type runner = func(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error)

func saturate(senders, receivers int) runner {
	return func(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
		return measure.Saturate(ctx, t, measure.Shape{Senders: senders, Receivers: receivers}, cfg)
	}
}

func paced(rate int) runner {
	return func(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
		return measure.Pace(ctx, t, measure.Shape{Senders: 1000, Receivers: 1000}, rate, cfg)
	}
}

func fanOut(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
	return measure.FanOut(ctx, t, 1000, cfg)
}

func oneShots(underWay int) runner {
	return func(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
		return measure.OneShots(ctx, t, underWay, cfg)
	}
}

func asks(pairs int) runner {
	return func(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
		return measure.Asks(ctx, t, name, pairs, cfg)
	}
}

func idle(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
	return measure.Idle(ctx, t, 5000, cfg)
}

func storm(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
	return measure.Storm(ctx, t, measure.Shape{Senders: 50, Receivers: 1000}, 100, cfg)
}

// crowd has 50 of so many agents stream to 50 others; the rest is connected and idle.
func crowd(agents int) runner {
	return func(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
		return measure.Saturate(ctx, t, measure.Shape{Senders: 50, Receivers: 50, Idle: agents - 100}, cfg)
	}
}

// few is how many chunks are under way in each of many streams: what fifteen thousand of them hold together is
// still less than an edge holds.
const few = 16

// spread has 50 of so many agents stream to all the others. In each stream as much is under way whatever their
// number, as a chunk costs by how many others share its record.
func spread(agents int) runner {
	return func(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
		cfg.Window = few
		cfg.Warm += time.Duration(agents) * time.Millisecond // until the last of the streams has begun, which costs more than a chunk
		return measure.Saturate(ctx, t, measure.Shape{Senders: 50, Receivers: agents - 50}, cfg)
	}
}

func tools(programs, each int) runner {
	return called(func(ctx context.Context, t measure.Called, name string, cfg measure.Config) (measure.Result, error) {
		return measure.Tools(ctx, t, name, programs, each, cfg)
	})
}

func sessions(talk measure.Talk) runner {
	return called(func(ctx context.Context, t measure.Called, name string, cfg measure.Config) (measure.Result, error) {
		return measure.Sessions(ctx, t, name, talk, cfg)
	})
}

func nodes() runner {
	return called(func(ctx context.Context, t measure.Called, name string, cfg measure.Config) (measure.Result, error) {
		return measure.Nodes(ctx, t, name, 1000, cfg)
	})
}

// called is a load for systems that carry calls of AIP.
func called(run func(context.Context, measure.Called, string, measure.Config) (measure.Result, error)) runner {
	return func(ctx context.Context, t measure.Target, name string, cfg measure.Config) (measure.Result, error) {
		c, ok := t.(measure.Called)
		if !ok {
			return measure.Result{}, loadgen.ErrNone
		}
		return run(ctx, c, name, cfg)
	}
}
