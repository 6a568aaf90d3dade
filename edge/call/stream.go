package call

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// A request that is a stream goes into a lane of its own, under the box's name in place of a session's: so its parts
// are stored in order, once, and none behind a hole. Anyone who finishes the call elsewhere fences that lane under the
// second epoch, and ends there what is open: so nothing follows, and there is one end.

// stream is a request that is said in parts.
type stream struct {
	name string
	lane *broker.Lane
	next uint32       // index of the part that comes next; its speaker's own
	held atomic.Int64 // bytes on their way

	mu    sync.Mutex // guards the fields below
	ended bool       // its end is stored
	err   error      // why no part is taken any more
}

// The epochs of a stream's lane.
const (
	speaksUnder = 1
	endsUnder   = 2
)

// laneOf is the lane of a call whose request is a stream.
func (r *Registry) laneOf(c *presence.Call, epoch uint64) broker.LaneConfig {
	return broker.LaneConfig{From: c.From, Session: c.Box, Epoch: epoch, To: agora.ToAgent(c.Tenant, c.To), Valid: r.cfg.Valid}
}

// newStream makes the stream of a call.
func (r *Registry) newStream(a *Answer) *stream {
	cfg := r.laneOf(&a.call, speaksUnder)
	cfg.Deposed, cfg.Payer = func() { a.fail(errCut) }, a.owner.Principal
	return &stream{name: a.call.Request, lane: r.cfg.Broker.Lane(cfg)}
}

// errCut is the error of a caller whose stream others have ended.
var errCut = agora.Errorf(agora.StreamAborted, "the request's stream was given up, as this edge could not be reached")

// open reports whether the stream may lack its end.
func (s *stream) open() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended
}

// over returns why no part is taken any more; nil while some are.
func (s *stream) over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// fail has no part be taken any more.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(s.err, err)
}

// put stores a part, and waits for that; where ctx is over before, nobody knows whether it is.
func (s *stream) put(ctx context.Context, m agora.Message) error {
	told := make(chan error, 1)
	size := int64(len(m.Body) + overhead)
	s.held.Add(size)
	s.lane.Put(m, func(r broker.Result) {
		s.held.Add(-size)
		told <- r.Err
	})
	select {
	case err := <-told:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// done notes that the end is stored.
func (s *stream) done() {
	s.mu.Lock()
	s.ended, s.err = true, errSaid
	s.mu.Unlock()
	s.lane.Close()
}

var errSaid = agora.Errorf(agora.InvalidRequest, "the request's stream has ended")

const (
	cutTime     = 2 * time.Second // for a stream to be ended in its own lane
	endTime     = 5 * time.Second // and by a fence: then it is tried again
	cutsAtATime = 16
)

// endStream has the stream of a call end for its receiver, where it has not: once, however often it is called, at
// whatever edges.
func (r *Registry) endStream(ctx context.Context, c *presence.Call) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	cfg := r.laneOf(c, endsUnder)
	cfg.Used, cfg.Open = true, []broker.OpenStream{{Stream: c.Request, Kind: agora.Request, Indexed: true}}
	err := r.cfg.Broker.EndLane(ctx, cfg)
	if errors.Is(err, broker.ErrDeposed) {
		return nil // by who has looked through the log for what presence had lost
	}
	return err
}

// cut ends a stream whose caller goes before its end.
func (r *Registry) cut(ctx context.Context, l *leaving) error {
	s := l.stream
	defer s.lane.Close()
	own, cancel := context.WithTimeout(ctx, cutTime)
	defer cancel()
	m := agora.AbortBody{Code: cmp.Or(l.code, agora.StreamAborted)}.Message()
	m.Kind, m.Stream = agora.Request, s.name
	err := s.put(own, m)
	if err == nil {
		return nil
	}
	switch agora.AsError(err).Code {
	case agora.StreamNotFound, agora.StreamAborted: // it has ended, or never began
		return nil
	}
	return r.endStream(ctx, &l.Call)
}

// cutAll does so for all that leave before their end, some at a time, and returns those of which that failed apart.
func (r *Registry) cutAll(ctx context.Context, some []leaving) (done, left []leaving, err error) {
	errs := make([]error, len(some))
	var work sync.WaitGroup
	places := make(chan struct{}, cutsAtATime)
	for i := range some {
		if some[i].stream == nil {
			continue
		}
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			errs[i] = r.cut(ctx, &some[i])
		})
	}
	work.Wait()
	for i, l := range some {
		if errs[i] != nil {
			left, err = append(left, l), errs[i]
		} else {
			l.stream = nil
			done = append(done, l)
		}
	}
	return done, left, err
}
