package edge

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

const (
	sweepBatch   = 64 // sessions that one sweep finishes
	sweepWorkers = 8  // at the same time
	laneWorkers  = 16 // lanes of one session that are ended at the same time
)

// reapLoop ends the sessions whose grace is over, and those of dead edges,
// whichever edge had them. Several edges may do so at once: each step is harmless to repeat.
func (n *Node) reapLoop() {
	every := max(n.cfg.Lease/5, 50*time.Millisecond)
	for pause.For(n.ctx, every) {
		if _, ok := n.valid(); !ok {
			continue
		}
		ending, err := n.cfg.Presence.Sweep(n.ctx, n.holder, sweepBatch)
		if err != nil {
			n.cfg.Log.Debug("sweep failed", "err", err)
			continue
		}
		n.reapAll(ending)
		if err := n.calls.Sweep(n.ctx); err != nil && n.ctx.Err() == nil {
			n.cfg.Log.Warn("calls of dead edges were not ended, which is tried again", "err", err)
		}
	}
}

func (n *Node) reapAll(ending []presence.Claim) {
	var workers sync.WaitGroup
	defer workers.Wait()
	places := make(chan struct{}, sweepWorkers)
	for _, c := range ending {
		places <- struct{}{}
		workers.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(n.ctx, 3*n.cfg.Lease)
			defer cancel()
			if err := n.reap(ctx, c.Tenant, c.Agent, false); err != nil && n.ctx.Err() == nil {
				n.cfg.Log.Warn("session was not finished", "agent", c.Agent, "err", err)
			}
		})
	}
}

// Reap ends a session for good that is ending, whichever edge had it. It returns when the session is over; nil also where somebody else has ended it.
func (n *Node) Reap(ctx context.Context, tenant string, id agora.AgentID) error {
	return n.reap(ctx, tenant, id, false)
}

// reap ends a session for good: every open stream of it is aborted in its
// receiver's log, it leaves its spaces, and the id is free for a new session. Without a session, a registration that is over ends so.
// flushed says that its last edge has done so with its lanes already.
func (n *Node) reap(ctx context.Context, tenant string, id agora.AgentID, flushed bool) error {
	err := n.reapOnce(ctx, tenant, id, flushed)
	if errors.Is(err, presence.ErrDeposed) {
		err = n.lapse(ctx, tenant, id)
	}
	if errors.Is(err, presence.ErrDeposed) {
		return nil // somebody else has finished it
	}
	return err
}

func (n *Node) reapOnce(ctx context.Context, tenant string, id agora.AgentID, flushed bool) error {
	c, rec, err := n.cfg.Presence.Sessions.Ending(ctx, tenant, id)
	if err != nil {
		return err
	}
	if err := n.awaitHandover(ctx, c); err != nil {
		return err
	}
	if !flushed {
		if err := n.endLanes(ctx, c, rec); err != nil {
			return err
		}
	}
	for name := range rec.Spaces {
		if err := n.hub.Leave(ctx, c, name); err != nil && agora.AsError(err).Code != agora.SpaceNotFound {
			return err
		}
	}
	stays := rec.Until.After(n.cfg.Broker.Now()) // as it has registered
	if !stays {
		if err := n.tell(ctx, c, agora.Offline); err != nil {
			return err
		}
	}
	if err := n.cfg.Presence.Sessions.Finished(ctx, c, stays); err != nil {
		return err
	}
	if rec.Dial != nil {
		if err := n.cfg.Presence.Dials.FreeAddress(ctx, c, *rec.Dial); err != nil {
			n.cfg.Log.Debug("address was not given back, and is free in a minute", "agent", c.Agent, "err", err)
		}
	}
	if stays { // told once it is so: who reads it then finds it
		n.announce(c, agora.Updated)
	}
	n.note(c, presence.Event{At: n.cfg.Broker.Now().UTC(), What: presence.Over, Edge: n.cfg.ID, Session: c.Session, Epoch: c.Epoch})
	return nil
}

// endLanes ends every lane of a session, some at a time: an agent may have written to thousands.
func (n *Node) endLanes(ctx context.Context, c presence.Claim, rec presence.Record) error {
	errs := make([]error, len(rec.Lanes))
	var workers sync.WaitGroup
	places := make(chan struct{}, laneWorkers)
	for i, l := range rec.Lanes {
		places <- struct{}{}
		workers.Go(func() {
			defer func() { <-places }()
			errs[i] = n.endLane(ctx, c, rec, l)
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// endLane fences a lane, so that nothing late can land behind its end, and
// aborts what is open in it.
func (n *Node) endLane(ctx context.Context, c presence.Claim, rec presence.Record, l presence.Lane) error {
	cfg := broker.LaneConfig{
		From: c.Agent, Session: c.Session, Epoch: c.Epoch, To: l.To,
		Used: true, Dirty: rec.Dirty, Valid: n.valid,
	}
	for _, o := range l.Open {
		if o.Stream != "" && o.Stream[0] != 0 { // what begins so is a request that waits: its end is the session's
			cfg.Open = append(cfg.Open, broker.OpenStream{Stream: o.Stream, Kind: o.Kind, Indexed: o.Indexed})
		}
	}
	return n.cfg.Broker.EndLane(ctx, cfg)
}
