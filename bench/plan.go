package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora/bench/internal/measure"
	"github.com/agora-relay/agora/bench/internal/system"
	"github.com/agora-relay/agora/internal/loadgen"
)

// plan is what is to be measured.
type plan struct {
	systems []system.Kind
	loads   []kind
	runs    int
	cfg     measure.Config
	data    string
}

// plan tells what the options ask for, or what is wrong with them.
func (o *options) plan() (p plan, err error) {
	p = plan{runs: o.runs, cfg: o.cfg, data: o.data}
	switch {
	case o.runs < 1, o.cfg.Warm < 0, o.cfg.Time <= 0, o.cfg.Window < 1:
		return p, errors.New("-runs, -time and -window must be above 0, and -warm not below")
	case o.procs < 0:
		return p, errors.New("-procs must not be below 0")
	case o.cfg.Size < measure.MinSize || o.cfg.Size > 4096:
		return p, fmt.Errorf("-size must be %d to 4096", measure.MinSize)
	}
	p.systems = chosen(o.only, system.Kinds, func(k system.Kind) string { return k.Name })
	if o.only == "" {
		p.systems = slices.DeleteFunc(p.systems, func(k system.Kind) bool { return k.Aside })
	}
	switch o.loads {
	case "all":
		p.loads = loads()
	case "":
		p.loads = slices.DeleteFunc(loads(), func(l kind) bool { return !l.main })
	default:
		p.loads = chosen(o.loads, loads(), func(l kind) string { return l.name })
	}
	if len(p.systems) == 0 || len(p.loads) == 0 {
		return p, errors.New("there is no such system or load: see -list")
	}
	return p, nil
}

// chosen returns what a list asks for, by name or, where nothing has that name, by how names begin. An empty list asks
// for all.
func chosen[T any](list string, all []T, name func(T) string) (some []T) {
	asked := strings.Split(list, ",")
	for i, begin := range asked {
		if slices.ContainsFunc(all, func(x T) bool { return name(x) == begin }) {
			asked[i] = begin + "\x00" // and nothing longer
		}
	}
	for _, x := range all {
		if slices.ContainsFunc(asked, func(begin string) bool { return strings.HasPrefix(name(x)+"\x00", begin) }) {
			some = append(some, x)
		}
	}
	return some
}

// suits reports whether a load makes sense for a system.
func (l kind) suits(k system.Kind) bool {
	return l.aip == k.AIP && (!l.agora || (strings.HasPrefix(k.Name, "agora") || strings.HasPrefix(k.Name, "iat"))) && (!l.resumes || k.Resumes)
}

// estimate tells about how long it will take.
func (p plan) estimate() (d time.Duration) {
	const start = 3 * time.Second
	for _, k := range p.systems {
		d += start
		for _, l := range p.loads {
			if !l.suits(k) {
				continue
			}
			if l.fresh {
				d += start
			}
			d += l.setup + p.cfg.Warm + p.cfg.Time
		}
	}
	return d * time.Duration(p.runs)
}

// run measures everything, and tells on w how far it is.
func (p plan) run(ctx context.Context, t *system.Tools, w io.Writer) (*report, error) {
	r := newReport(p)
	for n := range p.runs {
		for _, k := range p.systems {
			if err := p.measure(ctx, k, t, func(l kind, res measure.Result, took time.Duration) {
				r.add(k.Name, l.name, res)
				fmt.Fprintf(w, "run %d  %-10s %-15s %5.1fs  %s\n", n+1, k.Name, l.name, took.Seconds(), line(l, res))
			}); err != nil {
				return r, fmt.Errorf("%s: %w", k.Name, err)
			}
		}
	}
	return r, nil
}

// measure puts all loads on one system. It is started again for those that need it fresh, and after those that failed.
func (p plan) measure(ctx context.Context, k system.Kind, t *system.Tools, done func(kind, measure.Result, time.Duration)) (err error) {
	var s *system.Running
	stop := func() {
		if s != nil {
			s.Stop()
			s = nil
		}
	}
	defer stop()
	for i, l := range p.loads {
		if !l.suits(k) {
			continue
		}
		if l.fresh {
			stop()
		}
		if s == nil {
			if s, err = k.Start(ctx, t, p.data); err != nil {
				return err
			}
		}
		if err := measure.Quiet(ctx, s); err != nil { // what the load before left to do is not this one's
			return err
		}
		began := time.Now()
		res, err := p.try(ctx, s, l, fmt.Sprintf("l%d", i))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, loadgen.ErrNone) {
			continue
		}
		done(l, res, time.Since(began))
		if l.fresh || err != nil {
			stop()
		}
	}
	return nil
}

// try puts a load on a running system. That a load or a server fails is a result, too; the error says that the system
// is not to be used again.
func (p plan) try(ctx context.Context, s *system.Running, l kind, name string) (measure.Result, error) {
	r, err := l.run(ctx, s, name, p.cfg)
	if ended := s.Ended(); ended != nil {
		err = ended
	}
	if err != nil {
		r.Faults, r.Fault = r.Faults+1, err.Error()
	}
	return r, err
}

// line says in a line what a load was like.
func line(l kind, r measure.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.0f %s/s  server %.1f µs  client %.1f µs", r.Rate, l.unit, r.ServerCPU, r.ClientCPU)
	if r.P99 > 0 {
		fmt.Fprintf(&b, "  p50 %.0f µs  p99 %.0f µs", r.P50, r.P99)
	}
	if r.Memory > 0 {
		fmt.Fprintf(&b, "  %.1f KiB an agent", r.Memory/1024)
	}
	fmt.Fprintf(&b, "  %.0f MiB", r.RSS/(1<<20))
	if r.Lost+r.Disordered+r.Faults > 0 {
		fmt.Fprintf(&b, "  LOST %d of %d, out of order %d, faults %d %s", r.Lost, r.Sent, r.Disordered, r.Faults, r.Fault)
	}
	return b.String()
}
