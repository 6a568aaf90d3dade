package broker

import (
	"time"

	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// tell queues an answer. It is given by tellNow or tellLater, without the lock.
func (l *Lane) tell(done func(Result), r Result) {
	if done != nil {
		l.results = answers.add(l.results, &outcome{done, r})
	}
}

// tellLater has the queued answers given by another goroutine. The lock is held.
func (l *Lane) tellLater() {
	if l.results != nil && !l.telling && !l.posted {
		l.posted = true
		l.b.posts.post(l.tellNow)
	}
}

// tellNow gives the queued answers in order. One goroutine at a time does, so that
// order holds; the lock is not held while it calls.
func (l *Lane) tellNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.posted = false
	if l.telling {
		return
	}
	l.telling = true
	for l.results != nil {
		batch := l.results
		l.results = nil
		l.mu.Unlock()
		for _, o := range batch.all {
			o.done(o.r)
		}
		answers.end(batch)
		l.mu.Lock()
	}
	l.telling = false
	l.wakeWaiters()
}

// wakeWaiters wakes those who wait for the lane to be idle, if it is or never will be.
func (l *Lane) wakeWaiters() {
	if len(l.waiters) == 0 || l.state == fit && !l.gaveUp && !l.idle() {
		return
	}
	for _, w := range l.waiters {
		close(w)
	}
	l.waiters = nil
}

// sweeper looks after lanes that have something in hand: it sends again, gives up waiting, ends pauses.
type sweeper struct {
	some  chan struct{} // holds one token when there is reason to look now
	lanes laneSet
}

const (
	sweepEvery = 250 * time.Millisecond // while lanes have something in hand
	sweepLeast = 5 * time.Millisecond   // the shortest pause that is kept well
	hurryAfter = 50 * time.Millisecond  // a record is answered within a few milliseconds while all is well
)

func (s *sweeper) init() {
	s.some = make(chan struct{}, 1)
	s.lanes.m = make(map[*Lane]struct{})
}

// hurry has every record sent again now that has been on its way for longer than is usual.
func (s *sweeper) hurry() {
	s.lanes.mu.Lock()
	s.lanes.hurry = true
	s.lanes.mu.Unlock()
	signal(s.some)
}

// sweepLater gives the lane to the sweeper until it is idle. The lock is held.
func (l *Lane) sweepLater() {
	soon := !l.due.IsZero()
	if !l.swept {
		l.swept = true
		soon = l.b.sweeper.lanes.add(l) || soon
	}
	if soon {
		signal(l.b.sweeper.some)
	}
}

// sweep runs until the Broker closes. It sleeps while no lane has had anything in hand for a while. While some have,
// it looks by itself and is not woken for each of them: a lone record in a lane would have it woken every time.
func (b *Broker) sweep() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.sweeper.some:
		case <-timer.C:
		}
		lanes, hurry := b.sweeper.lanes.all()
		next := sweepEvery
		now := time.Now()
		for _, l := range lanes {
			if wait, more := l.sweep(now, hurry); more {
				next = min(next, max(wait, sweepLeast))
			}
		}
		clear(lanes) // those that are put aside meanwhile are nobody's
		if b.sweeper.lanes.rest() {
			next = time.Hour
		}
		timer.Reset(next)
	}
}

// sweep does what is due for a lane, and says when to look again, if at all.
func (l *Lane) sweep(now time.Time, hurry bool) (wait time.Duration, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = sweepEvery
	waiting := l.waiting(now)
	if waiting > l.b.cfg.Election {
		l.stuck.Store(true)
	}
	switch {
	case l.state == dead || l.state == ended:
	case l.away && waiting > l.b.cfg.GiveUp+lookPatience:
		l.giveIn(errSilent)
	case l.flight != nil && !l.away:
		l.again(now, hurry)
	case !l.due.IsZero():
		if wait = min(wait, l.due.Sub(now)); wait <= 0 {
			l.advance()
			wait = sweepEvery
		}
	case l.ledger.OwesAborts():
		l.advance()
	}
	l.tellLater()
	if l.flight == nil && l.due.IsZero() && !l.away && !l.ledger.OwesAborts() || l.state == dead || l.state == ended {
		l.swept = false
		l.b.sweeper.lanes.remove(l)
		return 0, false
	}
	return wait, true
}

// again has the flight sent again when it is time, or calls its fate unknown.
func (l *Lane) again(now time.Time, hurry bool) {
	f := l.flight
	if now.Sub(f.first) > l.b.cfg.GiveUp || l.b.Now().Sub(f.validAt) > record.DoubtAfter {
		l.look(false)
		return
	}
	wait := l.b.cfg.Retry
	if hurry {
		wait = min(wait, hurryAfter)
	}
	if _, ok := l.valid(); !ok || !guard.Retries || now.Sub(f.last) < wait {
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
		id, floor, at := f.id, l.lastSeq, f.validAt
		l.b.wg.Go(func() { l.sendAgain(id, floor, at) })
	}
}
