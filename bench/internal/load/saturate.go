package load

import (
	"context"
	"time"
)

// Saturate has every sender write whatever its receivers' credits allow.
func Saturate(ctx context.Context, t Target, name string, shape Shape, cfg Config) (Result, error) {
	s, err := openStreams(ctx, t, name, shape, cfg)
	if err != nil {
		return Result{}, err
	}
	stop := make(chan struct{})
	for _, from := range s.senders {
		s.write(func() { s.flood(from, stop) })
	}
	for range max(1, int64(cfg.Window)/s.quantum) {
		for _, f := range s.flows {
			f.owner.ready <- f
		}
	}
	r, err := s.measure(ctx, int64(cfg.Window)*int64(len(s.flows)))
	close(stop)
	if e := s.end(ctx, &r); err == nil {
		err = e
	}
	return r, err
}

// flood writes a quantum of texts for every credit, until it is stopped or a write fails.
func (s *stream) flood(from *sender, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case f := <-from.ready:
			for range s.quantum {
				if !s.send(from, f, time.Now().UnixNano()) {
					return
				}
			}
		}
	}
}

// send writes the next text of a flow, and tells whether it could.
func (s *stream) send(from *sender, f *flow, due int64) bool {
	if err := from.write(f, f.sent.Load(), due); err != nil {
		if !s.closing.Load() {
			s.refused(err.Error())
		}
		return false
	}
	f.sent.Add(1)
	return true
}
