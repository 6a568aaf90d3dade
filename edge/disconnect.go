package edge

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/agora-relay/agora/presence"
)

// Ending is what a door tells of a session's connection that has gone.
type Ending struct {
	Cause               Cause
	Code                int // of the protocol, by which the edge or the agent ended it first; 0 for none
	FramesIn, BytesIn   int64
	FramesOut, BytesOut int64
}

// Report takes note of how the connection went. The door calls it once, before Closed.
func (s *Session) Report(e Ending) {
	why := s.leaves(e.Cause)
	for k, name := range causes {
		if name == why {
			s.node.stats.ended[k].Add(1)
		}
	}
	attrs := append(s.attrs(), slog.String("reason", string(why)), slog.Int("close", e.Code),
		slog.Int64("frames_in", e.FramesIn), slog.Int64("bytes_in", e.BytesIn),
		slog.Int64("frames_out", e.FramesOut), slog.Int64("bytes_out", e.BytesOut),
		slog.Duration("lasted", s.node.cfg.Broker.Now().Sub(time.Unix(0, s.since)).Round(time.Millisecond)))
	s.node.cfg.Log.LogAttrs(s.node.ctx, slog.LevelInfo, "session ended", attrs...)
}

// leaves notes why the session leaves, and returns the reason: the first one counts.
func (s *Session) leaves(why Cause) Cause {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.why = cmp.Or(s.why, why)
	return s.why
}

// began logs that the session is here, and notes it behind in the agent's history.
func (s *Session) began() {
	s.node.stats.started.Add(1)
	e := s.event(presence.Began)
	e.At, e.After = time.Unix(0, s.since).UTC(), s.after
	s.node.background(func() { s.node.owner.Note(s.claim, e) })
	s.node.cfg.Log.LogAttrs(s.node.ctx, slog.LevelInfo, "session started",
		append(s.attrs(), slog.Bool("resumed", s.claim.Resumed))...)
}

// hasLeft notes in the agent's history that the session has left.
func (s *Session) hasLeft() {
	e := s.event(presence.Left)
	s.mu.Lock()
	e.Why, e.Cursor, e.Written = string(cmp.Or(s.why, Lost)), s.acked, s.written
	s.mu.Unlock()
	s.node.background(func() { s.node.owner.Note(s.claim, e) })
}

func (s *Session) event(what string) presence.Event {
	return presence.Event{
		At: s.node.cfg.Broker.Now().UTC(), What: what, Edge: s.node.cfg.ID, Conn: s.name, Session: s.claim.Session, Epoch: s.claim.Epoch,
	}
}

// attrs name the session in the log.
func (s *Session) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("agent", string(s.claim.Agent)), slog.String("tenant", s.claim.Tenant),
		slog.String("principal", s.actor.principal.Load().Name), slog.String("session", s.claim.Session), slog.String("conn", s.name),
	}
}
