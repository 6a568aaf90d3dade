package ownership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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

// reaper ends sessions permanently that nobody continues with.
type reaper struct {
	cfg        *Config
	lease      *Lease
	handovers  *handovers
	status     *status
	registered *registrations
	swept      atomic.Int64 // when the last whole sweep was, in ns since 1970
}

// loop ends the sessions whose grace is over, and those of dead edges,
// whichever edge had them. Several edges may do so at once: each step is harmless to repeat.
func (r *reaper) loop() {
	every := max(r.cfg.Lease/5, 50*time.Millisecond)
	r.swept.Store(time.Now().UnixNano())
	for failing := false; pause.For(r.cfg.Context, every); {
		if _, ok := r.lease.Valid(); !ok {
			continue
		}
		ending, err := r.cfg.Presence.Sweep(r.cfg.Context, r.cfg.Holder, sweepBatch)
		if err != nil {
			if !failing && r.cfg.Context.Err() == nil { // once, as it is tried again every two seconds
				r.cfg.Log.Warn("sessions that are over can't be ended, which is tried again", "err", err)
			}
			failing = true
			continue
		}
		failing = false
		r.countEdges()
		if r.all(ending) {
			r.swept.Store(time.Now().UnixNano())
		}
		if err := r.cfg.SweepCalls(r.cfg.Context); err != nil && r.cfg.Context.Err() == nil {
			r.cfg.Log.Warn("calls of dead edges were not ended, which is tried again", "err", err)
		}
	}
}

// countEdges tells the log how many edges share what may be stored.
func (r *reaper) countEdges() {
	if edges, err := r.cfg.Presence.Leases.Edges(r.cfg.Context); err == nil {
		r.cfg.Broker.SetEdges(len(edges))
	}
}

// all ends sessions, and returns whether every one of them has been ended.
func (r *reaper) all(ending []presence.Claim) bool {
	var workers sync.WaitGroup
	var failed atomic.Bool
	places := make(chan struct{}, sweepWorkers)
	for _, c := range ending {
		places <- struct{}{}
		workers.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(r.cfg.Context, 3*r.cfg.Lease)
			defer cancel()
			if err := r.reap(ctx, c.Tenant, c.Agent, false); err != nil && r.cfg.Context.Err() == nil {
				failed.Store(true)
				r.cfg.Log.Warn("session was not finished", "agent", c.Agent, "err", err)
			}
		})
	}
	workers.Wait()
	return !failed.Load()
}

// reap ends a session permanently: every open stream of it is aborted in its receiver's log, it leaves its spaces, and
// the id is free for a new session. Without a session, a registration that is over ends so. flushed says that its last
// edge has done so with its lanes already: that is all of them, unless an edge before it died and left some behind.
func (r *reaper) reap(ctx context.Context, tenant string, id agora.AgentID, flushed bool) error {
	err := r.once(ctx, tenant, id, flushed)
	if errors.Is(err, presence.ErrDeposed) {
		err = r.registered.lapse(ctx, tenant, id)
	}
	if errors.Is(err, presence.ErrDeposed) {
		return nil // somebody else has finished it
	}
	return err
}

func (r *reaper) once(ctx context.Context, tenant string, id agora.AgentID, flushed bool) error {
	c, rec, err := r.cfg.Presence.Sessions.Ending(ctx, tenant, id)
	if err != nil {
		return err
	}
	if err := r.handovers.await(ctx, c); err != nil {
		return err
	}
	if !flushed || rec.Dirty > 0 {
		if err := r.endLanes(ctx, c, rec); err != nil {
			return err
		}
	}
	for _, name := range slices.AppendSeq(rec.Leaving, maps.Keys(rec.Spaces)) {
		if err := r.cfg.Hub.Leave(ctx, c, name); err != nil && agora.AsError(err).Code != agora.SpaceNotFound {
			return err
		}
	}
	stays := rec.Until.After(r.cfg.Broker.Now()) // as it has registered
	if !stays {
		if err := r.status.tell(ctx, c, agora.Offline); err != nil {
			return err
		}
	}
	if err := r.cfg.Presence.Sessions.Finished(ctx, c, stays); err != nil {
		return err
	}
	if rec.Dial != nil {
		if err := r.cfg.Presence.Dials.FreeAddress(ctx, c, *rec.Dial); err != nil {
			r.cfg.Log.Debug("address was not given back, and is free in a minute", "agent", c.Agent, "err", err)
		}
	}
	if stays { // told once it is so: who reads it then finds it
		r.status.announce(c, agora.Updated)
	}
	r.status.note(c, presence.Event{At: r.cfg.Broker.Now().UTC(), What: presence.Over, Edge: r.cfg.Holder.Edge, Session: c.Session, Epoch: c.Epoch})
	return nil
}

// endLanes ends every lane of a session, some at a time: an agent may have written to thousands.
func (r *reaper) endLanes(ctx context.Context, c presence.Claim, rec presence.Record) error {
	errs := make([]error, len(rec.Lanes))
	var workers sync.WaitGroup
	places := make(chan struct{}, laneWorkers)
	for i, l := range rec.Lanes {
		places <- struct{}{}
		workers.Go(func() {
			defer func() { <-places }()
			errs[i] = r.endLane(ctx, c, rec, l)
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// endLane fences a lane, so that nothing late can land behind its end, and
// aborts what is open in it.
func (r *reaper) endLane(ctx context.Context, c presence.Claim, rec presence.Record, l presence.Lane) error {
	cfg := broker.LaneConfig{
		From: c.Agent, Session: c.Session, Epoch: c.Epoch, To: l.To,
		Used: true, Dirty: rec.Dirty, Valid: r.lease.Valid,
	}
	for _, o := range l.Open {
		if o.Stream != "" && o.Stream[0] != 0 { // what begins so is a request that waits: its end is the session's
			cfg.Open = append(cfg.Open, broker.OpenStream{Stream: o.Stream, Kind: o.Kind, Indexed: o.Indexed})
		}
	}
	return r.cfg.Broker.EndLane(ctx, cfg)
}
