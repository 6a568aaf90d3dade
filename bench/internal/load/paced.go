package load

import (
	"context"
	"time"
)

// Pace sends so many texts a second in all, over the flows in turn, each at its
// own moment. A text counts as late from the moment it was due, even when it
// could be written only later: a system that holds the load up can't hide it.
func Pace(ctx context.Context, t Target, name string, shape Shape, rate int, cfg Config) (Result, error) {
	s, err := openStreams(ctx, t, name, shape, cfg)
	if err != nil {
		return Result{}, err
	}
	pacers := 4
	if len(s.flows)%pacers != 0 || len(s.senders)%pacers != 0 {
		pacers = 1 // each sender belongs to one of them
	}
	start := time.Now()
	s.from.Store(start.Add(cfg.Warm).UnixNano())
	s.until.Store(start.Add(cfg.Warm + cfg.Time).UnixNano())
	for p := range pacers {
		s.write(func() {
			sharply(func() { s.pace(ctx, start, time.Second/time.Duration(rate), p, pacers) })
		})
	}
	r, err := s.measure(ctx, 0) // after which the pacers have ended
	if e := s.end(ctx, &r); err == nil {
		err = e
	}
	return r, err
}

// pace writes every pacers-th text of the schedule, from the p-th on.
func (s *stream) pace(ctx context.Context, start time.Time, every time.Duration, p, pacers int) {
	until := s.until.Load()
	for k := p; ; k += pacers {
		due := start.Add(time.Duration(k) * every)
		if due.UnixNano() >= until {
			return
		}
		for wait := time.Until(due); wait > 0; wait = time.Until(due) {
			sleep(wait)
		}
		f := s.flows[k%len(s.flows)]
		if ctx.Err() != nil || !s.send(f.owner, f, due.UnixNano()) {
			return
		}
	}
}
