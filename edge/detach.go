package edge

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/lock"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// closeTime bounds how long a connection that has gone keeps its goroutine
// for tidying up; what is not done then is done behind.
const closeTime = 5 * time.Second

// departure detaches a session that has stopped, and is how far that has come. mu is held meanwhile, which blocks.
type departure struct {
	mu         lock.Mutex // held while the session goes, and guards the fields below
	done       bool       // nothing of the session is left here
	incomplete bool       // it has gone, and parts were given up
}

// Closed tells that the socket is gone. With goodbye the session ends at
// once, else its grace begins. It returns when that is done, or handed to
// the node: it blocks for a few round trips, and 5 s at most. Idempotent.
func (s *Session) Closed(goodbye bool) {
	s.cursor.lost()
	if s.stop(goodbye) {
		s.departure.detachSoon(s)
	}
}

// detachSoon is detach within the time that a connection's goroutine has for it.
func (d *departure) detachSoon(s *Session) {
	ctx, cancel := context.WithTimeout(s.node.ctx, closeTime)
	defer cancel()
	d.detach(ctx, s)
}

// stop ends verbs and deliveries; false when that was done before.
func (s *Session) stop(goodbye bool) bool {
	subs := s.cursor.close() // first: once a session is known to be over, nothing is handed on any more
	if !s.life.stop(goodbye) {
		return false
	}
	s.node.sessions.markStopped(s)
	s.node.wheel.Remove(&s.keepalive.timer)
	s.mailbox.inbox.Close()
	for _, p := range subs {
		p.Close()
	}
	return true
}

// detach parts a session that has stopped: what is under way is flushed, and
// presence is told. While that fails, the node tries again.
func (d *departure) detach(ctx context.Context, s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done || d.incomplete {
		return
	}
	err := d.persistDetach(ctx, s)
	if errors.Is(err, presence.ErrDeposed) {
		if held, _ := s.reassert(ctx); held {
			err = d.persistDetach(ctx, s)
		}
	}
	lost, clean := false, true
	if errors.Is(err, presence.ErrDeposed) {
		// Anyone who has claimed it meanwhile waits to hear how it went here.
		var unknown error
		lost, unknown = s.out.abortIfLost(ctx)
		if clean, err = d.flushAndRelease(ctx, s); unknown != nil {
			err = unknown
		}
	}
	switch {
	case err == nil || errors.Is(err, presence.ErrDeposed):
		if !lost {
			s.keep(clean)
		}
		d.remove(s)
	case errors.Is(err, errGaveUp):
		// Anyone who continues with the session, or ends it, asks for the hand-over and hears it then.
		d.incomplete = true
	default:
		s.node.cfg.Log.Debug("leaving session is not settled yet", "agent", s.claim.Agent, "err", err)
	}
}

// abortIfLost ends what the session has open where presence has lost it and another has begun since: nobody will go on
// with this one, nor end it (see package ownership: the search for lost sessions may have come too early for what was
// still in hand here). The error is why that is not known: it has to be asked again, as nobody else will.
func (o *outgoing) abortIfLost(ctx context.Context) (lost bool, err error) {
	out := o.lanes.Load()
	if out == nil {
		return false, nil
	}
	_, lost, err = o.node.cfg.Presence.Sessions.Lost(ctx, o.claim.Tenant, o.claim.Agent, o.claim.Session)
	if lost && err == nil {
		_ = out.AbortOpen(ctx) // how it went is told by what comes next
	}
	return lost, err
}

// keep has the node remember the session, which may go on elsewhere, until it has begun there or its grace is over:
// should presence lose everything before, its agent has the token of here. clean says that nothing was given up.
func (s *Session) keep(clean bool) {
	if s.life.saidGoodbye() {
		return
	}
	h := s.held()
	h.GaveUp = !clean
	s.node.owner.Gone(h)
}

// reassert writes the session again where presence has lost it since the last
// renewal; held is false when it is another's, or over.
func (s *Session) reassert(ctx context.Context) (held bool, err error) {
	if !guard.Asserts {
		return false, nil
	}
	return s.node.owner.Reassert(ctx, s.held())
}

// reassert is that of the session that is here under a claim.
func (t *sessionTable) reassert(ctx context.Context, c presence.Claim) (held bool, err error) {
	if s := t.under(agora.ToAgent(c.Tenant, c.Agent), c.Epoch); s != nil {
		return s.reassert(ctx)
	}
	return false, nil
}

// remove lets go of a detached session. The caller holds the departure's mu.
func (d *departure) remove(s *Session) {
	d.done = true
	s.node.limits.usage.Give(admission.Bytes, s.owner(), s.profile.letGo())
	s.node.dials.drop(s)
	s.hasLeft()
	s.node.limits.usage.Give(admission.Spaces, s.owner(), int64(s.cursor.leave()))
	s.out.sender().Close()
	s.node.sessions.remove(s)
	s.node.stats.sessions.Add(-1)
}

// flush waits for what is under way, and after a goodbye ends what is open.
func (d *departure) flush(ctx context.Context, s *Session) error {
	if s.life.saidGoodbye() {
		if err := s.out.sender().AbortOpen(ctx); err != nil {
			return err
		}
	}
	return s.flushAll(ctx)
}

// persistDetach says to presence that the socket is gone, at once, and then how what
// was under way has ended.
func (d *departure) persistDetach(ctx context.Context, s *Session) error {
	p, at := s.node.cfg.Presence, s.lastPosition(ctx)
	if err := d.noteBalk(ctx, s); err != nil {
		return err
	}
	if err := s.lose(ctx, at); err != nil {
		return err
	}
	flushed := d.flush(ctx, s)
	if ctx.Err() != nil {
		return ctx.Err() // still under way
	}
	if now := s.position(); now.Cursor != at.Cursor { // more senders have been told
		at.Cursor = now.Cursor
		if err := s.lose(ctx, at); err != nil {
			return err
		}
	}
	if flushed == nil {
		if err := p.Sessions.Flushed(ctx, s.claim); err != nil {
			return err
		}
	}
	if !s.life.saidGoodbye() {
		return gaveUp(flushed)
	}
	if err := p.Sessions.End(ctx, s.claim); err != nil {
		return err
	}
	s.node.directory.Touch(s.claim.Tenant, s.claim.Agent) // the directory of this edge shows the agent no more
	s.node.background(func() {
		ctx, cancel := context.WithTimeout(s.node.ctx, s.node.cfg.Lease)
		defer cancel()
		if err := s.node.owner.Reap(ctx, s.claim.Tenant, s.claim.Agent, flushed == nil); err != nil {
			// The sweep finishes it: the session is ending, whatever becomes of this edge.
			s.node.cfg.Log.Debug("session is not finished yet", "agent", s.claim.Agent, "err", err)
		}
	})
	return gaveUp(flushed)
}

// noteBalk has presence know by which delivery the agent has closed its connection, where that is not known to have
// arrived.
func (d *departure) noteBalk(ctx context.Context, s *Session) error {
	at, did := s.node.sessions.balkedAt(s)
	if !did || s.cursor.hasArrived(at) {
		return nil
	}
	return s.node.cfg.Presence.Sessions.Balked(ctx, s.claim, presence.Balk{Space: at.Space, Seq: at.Seq, Size: at.size})
}

// lose says to presence that the socket is gone, and where the agent stands.
func (i *inbound) lose(ctx context.Context, at presence.Position) error {
	return i.node.cfg.Presence.Sessions.Lose(ctx, i.claim, at, i.cursor.spacePositions(), i.life.saidGoodbye())
}

// lastPosition is the session's position as it goes. Whether the agent has
// seen everything up to now is asked of the log, so that its return after a
// long sleep can be told truthfully whether it missed anything.
func (i *inbound) lastPosition(ctx context.Context) presence.Position {
	p, now := i.position(), i.node.cfg.Broker.Now()
	if last, err := i.node.cfg.Broker.Last(ctx, i.address()); err == nil && last <= p.Tail {
		p.TailAt = now
	}
	return p
}

// errGaveUp says that parts were given up: the hand-over will not be a clean one.
var errGaveUp = errors.New("parts were given up")

func gaveUp(flushed error) error {
	if flushed != nil {
		return errGaveUp
	}
	return nil
}

// handOver gives the session to another holder: the socket is closed, what is
// under way is flushed, positions are written. It reports whether nothing was given up.
func (d *departure) handOver(ctx context.Context, s *Session) (clean bool, err error) {
	s.life.leaves(TakenOver)
	s.deposed()
	s.stop(false)
	if err := d.mu.LockContext(ctx); err != nil {
		return false, err // the asker comes again
	}
	defer d.mu.Unlock()
	if d.done {
		return true, nil // and presence knows how it went
	}
	clean, err = d.flushAndRelease(ctx, s)
	if err != nil && !errors.Is(err, presence.ErrDeposed) { // nobody waits any more, or has heard it: its answer was lost
		return false, err
	}
	s.keep(clean)
	d.remove(s)
	return clean, nil
}

// flushAll waits until nothing is under way, receipts included: what gathers while others are under way follows them.
// What the door has in hand comes to its socket before the next holder delivers, unless that takes nothing for as long
// as a connection has for a sign of life. Presence knows of no stream then that was refused.
func (s *Session) flushAll(ctx context.Context) error {
	for {
		err := s.out.sender().Flush(ctx)
		waits := s.cursor.isWriting() && s.life.overFor() < s.node.cfg.Probe || err == nil && s.owed.Load().busy()
		if waits && pause.For(ctx, 5*time.Millisecond) {
			continue
		}
		if err != nil {
			return err
		}
		if err = s.out.sender().CloseRefused(ctx); errors.Is(err, presence.ErrDeposed) {
			return nil // what comes next says so
		}
		return err
	}
}

// flushAndRelease flushes what is under way and writes to presence, for the next holder,
// where the session stands and whether anything was given up. The caller holds the departure's mu.
func (d *departure) flushAndRelease(ctx context.Context, s *Session) (clean bool, err error) {
	flushed := s.flushAll(ctx)
	if ctx.Err() != nil {
		return false, ctx.Err() // still under way: the asker comes again
	}
	clean = flushed == nil
	if err := d.noteBalk(ctx, s); err != nil {
		return false, err
	}
	return clean, s.node.cfg.Presence.Sessions.HandedOver(ctx, s.claim, s.position(), s.cursor.spacePositions(), !clean)
}

// endings says why a session is ended that another edge asks this one to end.
var endings = map[string]Reason{
	"kick":  {Cause: Kicked, Text: "an operator has ended the session"},
	"evict": {Cause: TakenOver, Text: "another agent answers at its address"},
	"end":   {Cause: Goodbye, Text: "its agent has ended the session by another edge"},
}

// endHere closes the session's connection permanently, and settles it.
func (s *Session) endHere(ctx context.Context, why Reason) {
	s.life.leaves(why.Cause)
	s.conn.Close(why)
	if s.stop(true) {
		s.departure.detach(ctx, s)
	}
}
