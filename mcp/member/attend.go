package member

import (
	"context"
	"time"
)

// attend follows the tools of a session for as long as that lasts, and returns nil then. Where the server tells changes
// no more, though it can be called, it returns another session to take its place.
func (m *Member) attend(ctx context.Context, s *session) *session {
	signal(s.changed) // what has changed since the last session is read
	var wait <-chan time.Time
	var todo chan struct{} // signalled when the wait is over
	retry := func(what chan struct{}) {
		wait, todo = time.After(m.after(s.fails)), what
		s.fails++
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.life.Done():
			return nil
		case <-wait:
			wait = nil
			signal(todo)
		case <-s.stale:
			if next := m.renew(ctx, s); next != nil {
				return next
			}
			retry(s.stale)
		case <-s.changed:
			if err := m.refresh(ctx, s); err != nil && ctx.Err() == nil && s.life.Err() == nil {
				m.cfg.Log.Warn("the tools of the server could not be told to the cluster", "err", err)
				retry(s.changed)
			}
		}
	}
}

// renew opens a session in the place of one that is told no changes any more; nil where that fails, or is too soon
// after the last time.
func (m *Member) renew(ctx context.Context, s *session) *session {
	if time.Since(s.begun) < steady && !s.waited {
		s.waited = true
		return nil
	}
	next, err := m.open(ctx, m.version)
	if err != nil {
		m.cfg.Log.Debug("the tool server tells no changes of its tools", "err", err)
		return nil
	}
	if time.Since(s.begun) < steady {
		next.fails = s.fails
	}
	return next
}
