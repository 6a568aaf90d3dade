package broker

import (
	"cmp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// laneRegistry finds the open lanes by number. The zero value is ready.
type laneRegistry struct {
	acks string // prefix of the subjects on which their records are acknowledged

	mu   sync.RWMutex // guards the fields below
	m    map[uint64]*Lane
	last uint64 // number of the latest
}

// add gives a lane its number, by which the answers to its records find it.
func (r *laneRegistry) add(l *Lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil {
		r.m = make(map[uint64]*Lane)
	}
	r.last++
	l.number = r.last
	r.m[l.number] = l
}

// replyTo returns the subject on which the n-th record is acknowledged, of the lane of a number.
func (r *laneRegistry) replyTo(lane, n uint64) string {
	var room [96]byte
	b := append(room[:0], r.acks...)
	b = append(strconv.AppendUint(b, lane, 36), '.')
	return string(strconv.AppendUint(b, n, 36))
}

// ofReply returns the lane whose record is acknowledged on a subject; nil when there is none.
func (r *laneRegistry) ofReply(subject string) *Lane {
	lane, _, _ := strings.Cut(subject[len(r.acks):], ".")
	n, err := strconv.ParseUint(lane, 36, 64)
	if err != nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.m[n]
}

// all returns the lanes that are open.
func (r *laneRegistry) all() []*Lane {
	r.mu.RLock()
	defer r.mu.RUnlock()
	lanes := make([]*Lane, 0, len(r.m))
	for _, l := range r.m {
		lanes = append(lanes, l)
	}
	return lanes
}

// forgetLane forgets a lane that has ended, whose lock is held.
func (b *Broker) forgetLane(l *Lane) {
	if l.watched { // the retrier need not hold it until it looks again
		l.watched = false
		b.retrier.remove(l)
	}
	b.lanes.mu.Lock()
	delete(b.lanes.m, l.number)
	b.lanes.mu.Unlock()
	b.count.lanes.Add(-1)
}

// retrier visits the lanes that wait for something: it sends records again, gives up waiting for an answer, ends
// pauses.
type retrier struct {
	some chan struct{} // holds one token when there is reason to look now

	mu      sync.Mutex // guards the fields below; taken under a lane's lock, never before it
	m       map[*Lane]struct{}
	hurries bool    // records are to be sent again at once
	awake   bool    // it looks again by itself, within retrierEvery
	spare   []*Lane // room for what all returns
}

const (
	retrierEvery = 250 * time.Millisecond // while lanes have something in hand
	retrierLeast = 5 * time.Millisecond   // the shortest pause that is kept well
	hurryAfter   = 50 * time.Millisecond  // a record is answered within a few milliseconds while all is well
)

func (s *retrier) init() { s.some, s.m = make(chan struct{}, 1), make(map[*Lane]struct{}) }

// hurry has each record sent again at once that has been in flight for longer than usual.
func (s *retrier) hurry() {
	s.mu.Lock()
	s.hurries = true
	s.mu.Unlock()
	signal(s.some)
}

// add adds a lane to those that the retrier visits. It reports whether the retrier must be woken to do so within
// retrierEvery.
func (s *retrier) add(l *Lane) (wake bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[l] = struct{}{}
	wake, s.awake = !s.awake, true
	return wake
}

func (s *retrier) remove(l *Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, l)
}

// rest lets the retrier sleep, if there are no lanes.
func (s *retrier) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.m) == 0 {
		s.awake = false
	}
	return !s.awake
}

// all returns the lanes, to be cleared and not used once it is called again, and whether their records are to be sent
// again at once.
func (s *retrier) all() (lanes []*Lane, hurry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lanes = s.spare[:0]
	for l := range s.m {
		lanes = append(lanes, l)
	}
	s.spare = lanes
	hurry, s.hurries = s.hurries, false
	return lanes, hurry
}

// watch gives the lane to the retrier until it is idle. The lock is held.
func (l *Lane) watch() {
	soon := l.pace.running()
	if !l.watched {
		l.watched = true
		soon = l.b.retrier.add(l) || soon
	}
	if soon {
		signal(l.b.retrier.some)
	}
}

// visit does what is due for the lanes, and returns when to do so again. While there are lanes it goes by the time alone:
// a lone record in a lane would otherwise have the retrier woken every time.
func (s *retrier) visit() (next time.Duration) {
	lanes, hurry := s.all()
	next, now := retrierEvery, time.Now()
	for _, l := range lanes {
		if wait, more := l.doDue(now, hurry); more {
			next = min(next, max(wait, retrierLeast))
		}
	}
	clear(lanes) // those that are put aside meanwhile are nobody's
	if s.rest() {
		return time.Hour
	}
	return next
}

// doDue does what is due for a lane, and returns when to visit it again, if at all.
func (l *Lane) doDue(now time.Time, hurry bool) (wait time.Duration, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = retrierEvery
	var waiting time.Duration // for the log
	switch {
	case l.inflight != nil && !l.inflight.first.IsZero():
		waiting = now.Sub(l.inflight.first)
	case l.state.asks():
		waiting = now.Sub(l.recovery.since)
	}
	if waiting > l.b.cfg.Election {
		l.stuck.Store(true)
		l.stream.stores.refused()
	}
	switch {
	case l.state.over():
	case l.state == laneRecovers && waiting > l.b.cfg.GiveUp+recoveryPatience:
		l.failPending(cmp.Or(l.recovery.why, jslog.ErrSilent))
	case l.inflight != nil && l.state == laneActive:
		l.retry(now, hurry)
	case l.pace.running():
		if wait = min(wait, l.pace.due.Sub(now)); wait <= 0 {
			l.advance()
			wait = retrierEvery
		}
	case l.ledger.OwesAborts():
		l.advance()
	}
	l.tellLater()
	if l.state == laneActive && l.inflight == nil && !l.pace.running() && !l.ledger.OwesAborts() || l.state.over() {
		l.watched = false
		l.b.retrier.remove(l)
		return 0, false
	}
	return wait, true
}

// retry sends the record in flight again when it is time, or starts recovery.
func (l *Lane) retry(now time.Time, hurry bool) {
	f := l.inflight
	if now.Sub(f.first) > l.b.cfg.GiveUp || l.b.clock.Now().Sub(f.validAt) > record.DoubtAfter {
		l.startRecovery(false)
		return
	}
	wait := l.b.cfg.Retry
	if hurry {
		wait = min(wait, hurryAfter)
	}
	if _, ok := l.cfg.valid(l.b.clock.Now()); !ok || !guard.Retries || now.Sub(f.last) < wait {
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
