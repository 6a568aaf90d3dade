package client

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agora-relay/agora"
)

// lane is what goes to one receiver in this session. The outbox's lock guards it.
//
// An edge that refuses a number with UNAVAILABLE refuses all beyond it, until
// that number comes again. Then the lane is blocked: after a pause its first
// frame goes out alone, under the lowest number that was refused, and the rest when that is
// stored. Alone, because the answers to what was sent before it come before its
// own: what is refused from then on was sent again, and what was never
// stored can be told from what may have been.
type lane struct {
	n      uint64   // the last number used
	got    uint64   // the highest number that is stored
	frames []*frame // in order; frames[0] is unfinished

	watches []*frame // those whose later receipts are waited for, in order

	limited uint64 // the latest number refused with RATE_LIMITED: the edge refuses all beyond it until it hears one of those again

	// While it is blocked.
	low    uint64    // lowest number refused since the last receipt; 0: not blocked
	again  bool      // the edge waits for low: nothing from there on is stored or under way
	probe  *frame    // the one that goes out alone
	probed uint64    // highest number that one had
	tries  int       // refusals in a row
	due    time.Time // when to try again
	err    error     // the latest refusal
}

// Pauses before what was refused is sent again.
const (
	minRetry = 50 * time.Millisecond
	maxRetry = 5 * time.Second
)

// hold takes the news that number n was refused for the moment: from there on
// everything goes out again. A stream whose part it was is over, for its receiver,
// too. It returns false when the error is about no numbered frame.
func (o *outbox) hold(key outKey, n uint64, id string, err *agora.Error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.byID[id]; n == 0 && f != nil {
		key.to, n = f.to, f.n
	}
	l := o.lanes[key.to]
	if l == nil || n == 0 {
		return false
	}
	if n <= l.got || n > l.n {
		return true // what was said of it since counts
	}
	if n <= l.limited || l.limited <= l.got { // else nothing is amiss but that number, and the stream continues
		o.hit(l, key, n)
	}
	if l.low == 0 || !l.again && n <= l.probed {
		o.block(l, n, err)
	}
	if n < l.low {
		l.low = n
	}
	o.recall(l)
	o.compact()
	o.wake()
	return true
}

// overRate takes the news that number n was refused with RATE_LIMITED. Its frame fails, and nothing of what is behind
// it is lost.
func (o *outbox) overRate(to laneKey, n uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.lanes[to]; l != nil {
		l.limited = max(l.limited, n)
	}
}

// hit fails the stream whose part was refused. A start goes out again like any
// message, unless parts may have followed it: those of an event may, before it is stored.
func (o *outbox) hit(l *lane, key outKey, n uint64) {
	st := o.streams[key]
	for _, f := range l.frames {
		if st == nil && f.n == n && !f.finished && f.typ != "cancel" && f.stream == key.id {
			st = f.st
		}
	}
	if st != nil && (st.start.finished || st.renamed()) {
		o.failStream(st, agora.Errorf(agora.StreamAborted, "a part of the stream could not be stored"))
	}
}

// block begins a pause before the lane tries again.
func (o *outbox) block(l *lane, n uint64, err *agora.Error) {
	if l.low == 0 {
		l.low, l.tries = n, 0
		o.blocked[l] = struct{}{}
	}
	base := max(err.RetryAfter, minRetry)
	wait := max(base, min(base<<min(l.tries, 10), maxRetry, o.patience/4)) // so that what waits is tried before it fails
	l.due = time.Now().Add(wait + rand.N(wait/4+1))
	l.again, l.probe, l.err = true, nil, err
	l.tries++
}

// recall takes back what was written from the lowest refused number on, and
// forgets what nobody waits for any more.
func (o *outbox) recall(l *lane) {
	if !l.again {
		return
	}
	now := time.Now()
	for _, f := range l.frames {
		if f.finished || f.n < l.low {
			continue
		}
		f.sent, f.written = false, false
		if f.since.IsZero() {
			f.since = now
		}
		if f.gone {
			o.finish(f, l.err)
		}
	}
	o.ready = slices.DeleteFunc(o.ready, func(f *frame) bool { return f.lane == l && f.n >= l.low })
}

// revive lets blocked lanes try again whose pause is over, and fails what has
// been refused for too long. It returns after how long to call it again; 0: not before the next wake.
func (o *outbox) revive() (wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.blocked) == 0 {
		return 0
	}
	now := time.Now()
	for l := range o.blocked {
		next := o.expire(l, now)
		if l.probe == nil && !now.Before(l.due) {
			o.try(l)
		} else if l.probe == nil && len(l.frames) > 0 {
			next = min(next, l.due.Sub(now))
		}
		if len(l.frames) > 0 && (wait == 0 || next < wait) {
			wait = max(next, time.Millisecond)
		}
	}
	o.compact()
	return wait
}

// expire fails frames that have been refused for too long, and returns when the next one will be.
func (o *outbox) expire(l *lane, now time.Time) time.Duration {
	next := o.patience
	for _, f := range slices.Clone(l.frames) {
		if f.finished || f.sent || f.since.IsZero() || f.typ == "cancel" {
			continue
		}
		left := o.patience - now.Sub(f.since)
		switch {
		case left > 0:
			next = min(next, left)
		case f.st != nil:
			o.failStream(f.st, l.err)
			if f.st.begun() {
				o.push(f.st.cancellation())
			}
		default:
			o.finish(f, l.err)
		}
	}
	return next
}

// try sends the first frame of a blocked lane. Without one, the next frame is it.
func (o *outbox) try(l *lane) {
	after := l.probed
	if l.again {
		after = l.low - 1
	}
	l.renumber(after)
	for _, f := range l.frames {
		if f.n >= l.low && !f.written {
			l.again, l.probe, l.probed = false, f, f.n
			o.ready = append(o.ready, f)
			return
		}
	}
}

// renumber closes the gaps that frames have left which were taken out: those
// not sent get the numbers after n.
func (l *lane) renumber(n uint64) {
	rest := make([]*frame, 0, len(l.frames))
	for _, f := range l.frames {
		if f.finished {
			continue
		}
		rest = append(rest, f)
		if !f.sent && f.n >= l.low {
			f.n = n + 1
		}
		n = max(n, f.n)
	}
	l.frames, l.n = rest, n
}

// probed notes that the frame which went out alone is finished. Until
// something is known to be stored, the next one goes out alone: one that
// was refused permanently has used its number up, unless that is refused again.
func (o *outbox) probed(f *frame) {
	f.lane.probe = nil
	f.lane.again = !f.written
	o.wake()
}

// stored notes that everything up to n is stored. That ends a block.
func (o *outbox) stored(l *lane, n uint64) {
	l.got = max(l.got, n)
	if l.low == 0 || n < l.low {
		return
	}
	l.renumber(l.probed)
	l.low, l.again, l.probe, l.probed, l.err = 0, false, nil, 0, nil
	delete(o.blocked, l)
	for _, f := range l.frames {
		if !f.written {
			o.ready = append(o.ready, f)
		}
	}
	o.wake()
}
