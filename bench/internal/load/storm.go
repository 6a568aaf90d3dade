package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/bench/internal/wire"
)

// stormLimit is how long a storm is watched: who has not got all it missed by then is not counted.
const stormLimit = 30 * time.Second

// Storm cuts the connections of all receivers at once, has so many texts sent to
// each while they are away, and lets all of them return in the same moment, each to another server than before. Rate
// counts those that have got what they missed, per second until the last had it;
// the quantiles are how long that took from the moment on, connecting included.
func Storm(ctx context.Context, t Target, name string, shape Shape, missed int, cfg Config) (Result, error) {
	s, err := openStreams(ctx, t, name, shape, cfg)
	if err != nil {
		return Result{}, err
	}
	defer s.close()
	first, all := int64(1), int64(1+missed)
	if err := s.sendAll(first); err != nil {
		return Result{}, err
	}
	if err := s.drained(ctx, s.sent); err != nil { // each knows now where it stands
		return Result{}, err
	}
	for _, m := range s.receivers {
		m.cut.Store(true)
		if c, ok := m.Agent.(interface{ Cut() error }); ok { // a goodbye would end its session
			_ = c.Cut() // its reader ends in any case
		} else {
			m.Close()
		}
		<-m.gone
	}
	if err := s.sendAll(all); err != nil {
		return Result{}, err
	}
	if err := Quiet(ctx, s.target); err != nil {
		return Result{}, err
	}
	r, err := s.storm(ctx, all)
	s.finish(&r)
	r.Sent = s.sent()
	for _, f := range s.flows {
		r.Lost += f.lost + f.sent.Load() - f.next
	}
	return r, err
}

// sendAll writes texts until every flow has had so many.
func (s *stream) sendAll(until int64) error {
	for _, f := range s.flows {
		for f.sent.Load() < until {
			if !s.send(f.owner, f, time.Now().UnixNano()) {
				return fmt.Errorf("send to those that are away: %s", s.fault)
			}
		}
	}
	return nil
}

// storm has all receivers return and waits until each has so many texts.
func (s *stream) storm(ctx context.Context, all int64) (Result, error) {
	var whole, last atomic.Int64
	began, used, own := time.Now(), s.target.Usage(), clientCPU()
	for i, m := range s.receivers {
		s.write(func() {
			a, err := s.target.Resume(m.Agent, i)
			if err != nil {
				s.refused(err.Error())
				return
			}
			s.back(m, a, func(text []byte) {
				s.arrived(m, text)
				if s.flows[i].next == all && len(m.late) == 0 {
					took := time.Since(began)
					m.late = append(m.late, took)
					last.Store(int64(took)) // of two at once either will do
					whole.Add(1)
				}
			})
		})
	}
	var err error
	for err == nil && whole.Load() < int64(len(s.receivers)) && time.Since(began) < stormLimit {
		err = pause(ctx, 5*time.Millisecond)
	}
	after, n := s.target.Usage(), float64(whole.Load())
	if n == 0 {
		return Result{RSS: float64(after.RSS)}, err
	}
	return Result{
		Rate:      n / time.Duration(last.Load()).Seconds(),
		ServerCPU: us(after.CPU-used.CPU) / n,
		EdgeCPU:   us(after.Edges-used.Edges) / n,
		ClientCPU: us(clientCPU()-own) / n,
		RSS:       float64(after.RSS),
	}, err
}

// back gives a member the connection with which it has returned.
func (s *stream) back(m *member, a Agent, text func([]byte)) {
	s.mu.Lock()
	m.Agent = a
	s.mu.Unlock()
	m.cut.Store(false)
	s.listen(m, wire.Handler{Text: text})
	if s.closing.Load() {
		a.Close() // it came too late to be closed with the others
	}
}
