package ownership

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// A session that presence has lost, and whose edge has died, is swept by nobody: only the log knows what it had open.
// So once presence is whole again an edge looks through the log, and ends what is open of sessions that presence does
// not know. That is still to be done stands in presence's mark from the moment it is set, until somebody has finished:
// the one who dies in the midst of it, other edges, or those started later, see so with their next renewal. The first
// edge of a cluster does it too: it can't tell a new one from one in which everything but the log has ended.

// lostSessionsName is the name under which an edge answers that looks through the log now: one does at a time, mostly.
// More do no harm.
const lostSessionsName = "orphans"

// lostSessions ends what sessions had open that presence has lost.
type lostSessions struct {
	cfg       *Config
	lease     *Lease
	searching atomic.Bool // a goroutine ends it, or is about to
}

// seek has a goroutine end the streams of the sessions that presence had lost when it was made whole, unless one does
// or is about to. It waits for two leases and a part of one first: an edge that was slow to tell what it holds has done
// so by then, and what dead ones had on its way has landed. When it fails it is asked again with the next renewal.
func (s *lostSessions) seek(since time.Time) {
	if !s.searching.CompareAndSwap(false, true) {
		return
	}
	s.cfg.Go(func() {
		defer s.searching.Store(false)
		if !pause.For(s.cfg.Context, cmp.Or(s.cfg.Search, 2*s.cfg.Lease+rand.N(s.cfg.Lease))) {
			return
		}
		if err := s.end(s.cfg.Context, since); err != nil && s.cfg.Context.Err() == nil {
			s.cfg.Log.Warn("what lost sessions had open is not all ended, and is looked for again", "err", err)
		}
	})
}

// end does it once, unless another edge has, or does now.
func (s *lostSessions) end(ctx context.Context, since time.Time) error {
	_, still, err := s.cfg.Presence.Standing(ctx)
	if err != nil || !still.Equal(since) {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, s.cfg.Lease/5)
	defer cancel()
	if _, err := s.cfg.Broker.Ask(soon, lostSessionsName, nil); err == nil {
		return nil // should it die, the mark still says what it does now
	}
	over, err := s.cfg.Broker.Answer(lostSessionsName, func(context.Context, []byte) []byte { return []byte("1") })
	if err != nil {
		return err
	}
	defer over()
	o := lostSessionSearch{cfg: s.cfg, lease: s.lease, ctx: ctx, known: map[string]struct{}{}}
	if err := s.cfg.Broker.Unended(ctx, since, o.end); err != nil {
		return err
	}
	if o.ended > 0 {
		s.cfg.Log.Info("streams of lost sessions are ended", "edge", s.cfg.Holder.Edge, "lanes", o.ended)
	}
	if o.failed != nil {
		return o.failed
	}
	return s.cfg.Presence.Searched(ctx, since)
}

// lostSessionSearch is one search.
type lostSessionSearch struct {
	cfg   *Config
	lease *Lease
	ctx   context.Context

	mu     sync.Mutex          // guards the fields below
	known  map[string]struct{} // sessions that presence has: what becomes of them is for others
	ended  int                 // lanes
	failed error               // why the last lane could not be ended that is left
}

// end ends those of some lanes whose sessions are lost, a few at a time.
func (o *lostSessionSearch) end(lanes []broker.Unended) error {
	var workers sync.WaitGroup
	places := make(chan struct{}, sweepWorkers)
	for _, l := range lanes {
		places <- struct{}{}
		workers.Go(func() {
			defer func() { <-places }()
			err := o.endOne(l)
			o.mu.Lock()
			defer o.mu.Unlock()
			if err != nil {
				o.failed = err
			}
		})
	}
	workers.Wait()
	if errors.Is(o.failed, presence.ErrIncomplete) || o.ctx.Err() != nil {
		return o.failed
	}
	return nil
}

// endOne ends a lane, if its session is lost. Presence is asked right before, by the session: that of an agent which is
// there again is another one. The lane is fenced under an epoch younger than any holder's before, the highest in the
// log included, should the new server's clock be behind the lost one's, and older than any to come: it is given by the
// same clock. So the one who was cut off for so long that its session was given up here finds its lanes taken, and ends
// as edge.Session.laneLost says.
func (o *lostSessionSearch) endOne(l broker.Unended) error {
	o.mu.Lock()
	_, known := o.known[l.Session]
	o.mu.Unlock()
	if known {
		return nil
	}
	ctx, cancel := context.WithTimeout(o.ctx, o.cfg.Lease)
	defer cancel()
	epoch, lost, err := o.cfg.Presence.Sessions.Lost(ctx, l.To.Tenant, l.From, l.Session)
	if err == nil && lost { // it may be the call that the stream is the request of
		var open bool
		open, err = o.cfg.Presence.Calls.IsOpen(ctx, l.To.Tenant, l.Session)
		lost = !open
	}
	if err == nil && lost {
		err = o.cfg.Broker.EndLane(ctx, broker.LaneConfig{
			From: l.From, Session: l.Session, Epoch: max(epoch, l.Epoch+1), To: l.To, Used: true, Valid: o.lease.Valid,
		})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		return err
	case lost:
		o.ended++
	default:
		o.known[l.Session] = struct{}{}
	}
	return nil
}
