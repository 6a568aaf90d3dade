package broker

import (
	"cmp"
	"context"
	"time"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// retrier looks after lanes that have something in hand: it sends again, gives up waiting, ends pauses.
type retrier struct {
	some  chan struct{} // holds one token when there is reason to look now
	lanes laneSet
}

const (
	retrierEvery = 250 * time.Millisecond // while lanes have something in hand
	retrierLeast = 5 * time.Millisecond   // the shortest pause that is kept well
	hurryAfter   = 50 * time.Millisecond  // a record is answered within a few milliseconds while all is well
)

func (s *retrier) init() {
	s.some = make(chan struct{}, 1)
	s.lanes.m = make(map[*Lane]struct{})
}

// hurry has every record sent again now that has been on its way for longer than is usual.
func (s *retrier) hurry() {
	s.lanes.mu.Lock()
	s.lanes.hurry = true
	s.lanes.mu.Unlock()
	signal(s.some)
}

// watch gives the lane to the retrier until it is idle. The lock is held.
func (l *Lane) watch() {
	soon := l.pace.running()
	if !l.watched {
		l.watched = true
		soon = l.b.retrier.lanes.add(l) || soon
	}
	if soon {
		signal(l.b.retrier.some)
	}
}

// run looks after the lanes until ctx is over. It sleeps while no lane has had anything in hand for a while. While some have,
// it looks by itself and is not woken for each of them: a lone record in a lane would have it woken every time.
func (s *retrier) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.some:
		case <-timer.C:
		}
		lanes, hurry := s.lanes.all()
		next := retrierEvery
		now := time.Now()
		for _, l := range lanes {
			if wait, more := l.doDue(now, hurry); more {
				next = min(next, max(wait, retrierLeast))
			}
		}
		clear(lanes) // those that are put aside meanwhile are nobody's
		if s.lanes.rest() {
			next = time.Hour
		}
		timer.Reset(next)
	}
}

// doDue does what is due for a lane, and says when to look again, if at all.
func (l *Lane) doDue(now time.Time, hurry bool) (wait time.Duration, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = retrierEvery
	waiting := l.waiting(now)
	if waiting > l.b.cfg.Election {
		l.stuck.Store(true)
		l.b.watchers.refused(l.at.Stream)
	}
	switch {
	case l.state == dead || l.state == ended:
	case l.recovery != nil && waiting > l.b.cfg.GiveUp+recoveryPatience:
		l.failPending(cmp.Or(l.recovery.why, jslog.ErrSilent))
	case l.inflight != nil && l.recovery == nil:
		l.retry(now, hurry)
	case l.pace.running():
		if wait = min(wait, l.pace.due.Sub(now)); wait <= 0 {
			l.advance()
			wait = retrierEvery
		}
	case l.ledger.OwesAborts():
		l.advance()
	}
	l.deliverLater()
	if l.inflight == nil && !l.pace.running() && l.recovery == nil && !l.ledger.OwesAborts() || l.state == dead || l.state == ended {
		l.watched = false
		l.b.retrier.lanes.remove(l)
		return 0, false
	}
	return wait, true
}

// retry has the record sent again when it is time, or calls its fate unknown.
func (l *Lane) retry(now time.Time, hurry bool) {
	f := l.inflight
	if now.Sub(f.first) > l.b.cfg.GiveUp || l.b.Now().Sub(f.validAt) > record.DoubtAfter {
		l.startRecovery(false)
		return
	}
	wait := l.b.cfg.Retry
	if hurry {
		wait = min(wait, hurryAfter)
	}
	if _, ok := l.cfg.valid(l.b.Now()); !ok || !guard.Retries || now.Sub(f.last) < wait {
		return
	}
	if f.tries == 0 { // it never left
		l.b.count.retries.Add(1)
		l.publish(f)
		return
	}
	f.last = now
	if !f.asking {
		f.asking = true
		id, floor, at := f.id, l.history.last, f.validAt
		l.b.wg.Go(func() { l.retryIfSafe(id, floor, at) })
	}
}
