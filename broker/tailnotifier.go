package broker

import (
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/guard"
)

// tailNotifier tells those who listen at an address, a while after the last record stored from here, that it is there.
// Live records are handed on at most once: on a route between servers that breaks they are lost, and nobody hears of
// it. Of a stretch of records only the last could be missed for long, for the next one shows the gap. So one small
// message a stretch is enough, and addresses that are quiet cost nothing.
type tailNotifier struct {
	some chan struct{} // holds one token when there is one to come

	mu sync.Mutex // guards the field below
	m  map[string]tailNotice
}

// tailNotice is the last record stored from here at an address.
type tailNotice struct {
	at    jslog.Location
	seq   uint64
	since time.Time
}

const (
	notifyAfter = 1200 * time.Millisecond // servers take a second to mend a route
	notifyEvery = 300 * time.Millisecond
)

func (e *tailNotifier) init() {
	e.some = make(chan struct{}, 1)
	e.m = make(map[string]tailNotice)
}

// note has the listeners told of a record once more, unless a later one follows.
func (e *tailNotifier) note(at jslog.Location, seq uint64, now time.Time) {
	e.mu.Lock()
	e.m[at.Live] = tailNotice{at, max(seq, e.m[at.Live].seq), now}
	first := len(e.m) == 1
	e.mu.Unlock()
	if first {
		signal(e.some)
	}
}

// due takes out those that nothing followed, and says whether there are more.
func (e *tailNotifier) due(now time.Time, after time.Duration) (due []tailNotice, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for live, o := range e.m {
		if now.Sub(o.since) >= after {
			due = append(due, o)
			delete(e.m, live)
		}
	}
	return due, len(e.m) > 0
}

// notifyTails sends the notices that are due, and returns when to do so again: not before the next note, if there are none.
func (b *Broker) notifyTails() (next time.Duration) {
	if !b.nc.IsConnected() {
		return notifyEvery
	}
	due, more := b.tails.due(time.Now(), b.cfg.notify)
	for _, o := range due {
		b.nudge(o.at, o.seq)
	}
	if !more {
		return time.Hour
	}
	return notifyEvery
}

// nudge tells the listeners at p of a stored record that may never reach them: the server hands a record on once, and
// not again for a duplicate.
func (b *Broker) nudge(p jslog.Location, seq uint64) {
	if !guard.Nudges {
		return
	}
	m := nats.NewMsg(p.Live)
	m.Header[nudgeHeader] = []string{strconv.FormatUint(seq, 10)}
	// A nudge that is lost is made good by the next audit.
	_ = b.nc.PublishMsg(m)
}

const nudgeHeader = "Agora-Nudge"
