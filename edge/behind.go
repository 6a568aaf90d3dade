package edge

import (
	"context"
	"log/slog"
	"time"

	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// writeBehindLoop writes what need not be written at once: every second, positions
// with the third part of a lease. Losing one means repeating what was written since, marked.
func (n *Node) writeBehindLoop() {
	var flushed time.Time
	for pause.For(n.ctx, time.Second) {
		if now := time.Now(); now.Sub(flushed) >= n.cfg.Lease/3 {
			flushed = now
			n.sessions.flushPositions(n.ctx, n.cfg.Presence, n.cfg.Log)
		}
		n.relay.Tick(n.ctx)
		n.calls.Tick(n.ctx)
		n.sessions.detachLate(n.background)
	}
}

// flushPositions writes the positions of the sessions that moved, all in one batch.
func (t *sessionTable) flushPositions(ctx context.Context, p *presence.Store, log *slog.Logger) {
	moved := t.takeMoved()
	var batch []presence.Moved
	for s := range moved {
		batch = append(batch, s.positionChanges())
	}
	if len(batch) == 0 {
		return
	}
	if err := p.Positions.Write(ctx, batch); err != nil {
		// Losing a position means repeating, never skipping: the next move writes it.
		log.Warn("positions were not written", "err", err)
		for s := range moved {
			s.cursor.forgetPersisted()
			s.markMoved()
		}
	}
}

// detachLate tries again to detach the sessions that have stopped.
func (t *sessionTable) detachLate(background func(func())) {
	for _, s := range t.allStopped() {
		if s.departure.mu.TryLock() {
			s.departure.mu.Unlock()
			background(leaver{s}.detachSoon)
		}
	}
}
