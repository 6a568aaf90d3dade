package measure

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agora-relay/agora/internal/loadgen"
)

// calls is a load of some who call again as soon as they are answered.
type calls struct {
	target loadgen.Watched
	cfg    Config
	all    []func(ctx context.Context) error // one for each of those that call

	answers atomic.Int64

	mu     sync.Mutex // guards the fields below
	late   []time.Duration
	faults int64
	fault  string // the first one
}

// run has all call, and returns once they have stopped. Rates count answers, and their delay is from call to answer.
func (c *calls) run(ctx context.Context) (Result, error) {
	calling, stop := context.WithCancel(ctx)
	defer stop()
	var callers sync.WaitGroup
	from := time.Now().Add(c.cfg.Warm)
	for _, call := range c.all {
		callers.Go(func() { c.repeat(calling, call, from, from.Add(c.cfg.Time)) })
	}
	r, err := c.measure(ctx)
	stop()
	callers.Wait()
	r.Sent = c.answers.Load()
	c.finish(&r)
	return r, err
}

// repeat calls until ctx is over, or a call fails.
func (c *calls) repeat(ctx context.Context, call func(context.Context) error, from, until time.Time) {
	var late []time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		if err := call(ctx); err != nil {
			if ctx.Err() == nil {
				c.refused(err.Error())
			}
			break
		}
		c.answers.Add(1)
		if !began.Before(from) && began.Before(until) {
			late = append(late, time.Since(began))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = append(c.late, late...)
}

// measure lets the load run, and returns rate and cost of what was answered between warm-up and end.
func (c *calls) measure(ctx context.Context) (Result, error) {
	if err := pause(ctx, c.cfg.Warm); err != nil {
		return Result{}, err
	}
	began, got, used, own := time.Now(), c.answers.Load(), c.target.Usage(), clientCPU()
	err := pause(ctx, c.cfg.Time)
	after, n := c.target.Usage(), float64(c.answers.Load()-got)
	return Result{
		Rate: n / time.Since(began).Seconds(), RSS: float64(after.RSS),
		ServerCPU: us(after.CPU-used.CPU, n), EdgeCPU: us(after.Edges-used.Edges, n), ClientCPU: us(clientCPU()-own, n),
	}, err
}

func (c *calls) refused(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults++; c.faults == 1 {
		c.fault = what
	}
}

// finish adds to a result what is known once nobody calls any more.
func (c *calls) finish(r *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Faults, r.Fault = c.faults, c.fault
	if n := len(c.late); n > 0 {
		slices.Sort(c.late)
		r.P50, r.P99 = us(c.late[n/2], 1), us(c.late[n*99/100], 1)
	}
}

// clientCPU returns what this process has used.
func clientCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
