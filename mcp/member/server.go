package member

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// server is the tool server, whatever process or session it is now.
type server struct {
	mu  sync.Mutex    // guards the fields below
	now *session      // nil while there is none
	new chan struct{} // closed when there is another one
}

// use has a session carry calls from now on; nil for none.
func (v *server) use(s *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = s
	if v.new != nil {
		close(v.new)
		v.new = nil
	}
}

// acquire returns a session for a call; the caller owes it a Done of its calls. It blocks while the server is being
// started again, for a wait at most: then it is an UNAVAILABLE error. When ctx ends it returns its cause.
func (v *server) acquire(ctx context.Context, wait time.Duration) (*session, error) {
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		s, ended, other := v.take()
		if s != nil {
			return s, nil
		}
		select {
		case <-other:
		case <-ended:
		case <-late.C:
			return nil, &agora.Error{Code: agora.Unavailable, Message: "the tool server has ended, and is not there again yet", RetryAfter: time.Second}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take returns the session of now where that can carry a call, and else what is closed when that may have changed.
func (v *server) take() (s *session, ended, other <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.now != nil && v.now.life.Err() == nil {
		v.now.calls.Add(1)
		return v.now, nil, nil
	}
	if v.new == nil {
		v.new = make(chan struct{})
	}
	return nil, nil, v.new
}

// steady is how long a server must have run for its next end to be the first one again.
const steady = 10 * time.Second

// watch keeps a server there, beginning with a session, until ctx ends. It starts the server again when that ends, and
// tells the cluster when its tools change. When it returns, no server is there.
func (m *Member) watch(ctx context.Context, s *session) {
	var leaving sync.WaitGroup
	defer leaving.Wait()
	for s != nil {
		next := m.attend(ctx, s)
		m.server.use(next)
		switch {
		case next != nil:
			old := s
			leaving.Go(func() { m.retire(old, m.cfg.Grace) })
			s = next
		case ctx.Err() != nil:
			m.retire(s, m.cfg.Grace)
			return
		default:
			m.cfg.Log.Warn("the tool server has ended, and is started again", "how", s.how())
			m.retire(s, min(m.cfg.Grace, brokenGrace))
			if s = m.again(ctx, s); s != nil {
				m.server.use(s)
			}
		}
	}
}

// brokenGrace is the grace of a process that can't be spoken to any more.
const brokenGrace = 500 * time.Millisecond

// retire ends a session that carries no new calls, once those in hand have ended.
func (m *Member) retire(s *session, grace time.Duration) {
	s.calls.Wait()
	s.close(grace)
}

// again starts the server until it is there, as often as it takes; nil when ctx has ended before.
func (m *Member) again(ctx context.Context, old *session) *session {
	fails := old.fails + 1
	if time.Since(old.begun) >= steady {
		fails = 0
	}
	for ; pause.For(ctx, m.after(fails)); fails++ {
		s, err := m.open(ctx, m.version)
		if err == nil {
			s.fails = fails
			m.cfg.Log.Info("the tool server is there again")
			return s
		}
		if ctx.Err() == nil {
			m.cfg.Log.Warn("the tool server can't be started again yet", "starts", fails+1, "err", err)
		}
	}
	return nil
}

// after returns how long to wait before a start, after some that were in vain.
func (m *Member) after(fails int) time.Duration {
	b := m.cfg.Backoff
	d := min(b.Min<<min(fails, 20), b.Max)
	return d - rand.N(d/2+1)
}
