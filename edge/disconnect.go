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
	Largest             Place // of its frames that were delivered, where the agent has closed the connection as one was larger than it takes; zero otherwise
}

// Place is where something delivered stands.
type Place struct {
	Space string // in whose log; empty: in the mailbox
	Seq   uint64 // 0 for nowhere
	size  int    // as which its frame is measured
}

// Report notes how the connection went. The door calls it once, before Closed.
func (s *Session) Report(e Ending) {
	if e.Largest.Seq > 0 {
		s.node.sessions.balks(s, e.Largest)
	}
	why := s.life.leaves(e.Cause)
	s.node.stats.ended[why].Add(1)
	attrs := append(s.attrs(), slog.String("reason", why.String()), slog.Int("close", e.Code),
		slog.Int64("frames_in", e.FramesIn), slog.Int64("bytes_in", e.BytesIn),
		slog.Int64("frames_out", e.FramesOut), slog.Int64("bytes_out", e.BytesOut),
		slog.Duration("lasted", s.node.cfg.Broker.Now().Sub(time.Unix(0, s.since)).Round(time.Millisecond)))
	s.node.cfg.Log.LogAttrs(s.node.ctx, slog.LevelInfo, "session ended", attrs...)
}

// began logs that the session is here, and notes it behind in the agent's history: delivery begins behind a position.
func (b *binding) began(after uint64) {
	b.node.stats.started.Add(1)
	b.note(presence.Event{What: presence.Began, At: time.Unix(0, b.since).UTC(), After: after})
	b.node.cfg.Log.LogAttrs(b.node.ctx, slog.LevelInfo, "session started",
		append(b.attrs(), slog.Bool("resumed", b.claim.Resumed))...)
}

// hasLeft notes in the agent's history that the session has left.
func (i *inbound) hasLeft() {
	acked, written, _ := i.cursor.mailbox()
	i.note(presence.Event{What: presence.Left, At: i.Now().UTC(), Why: cmp.Or(i.life.reason(), Lost).String(), Cursor: acked, Written: written})
}
