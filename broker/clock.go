package broker

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/guard"
)

// clock tells the log's time: that of the servers, which stamp what is stored. A machine's own clock may be
// hours off, and may be set at any time: it is asked for nothing but how much time has passed.
type clock struct {
	fixed func() time.Time // tests say what the time is; else nil
	local func() time.Time // the machine's wall clock: until the log's time is known, and to tell how far off it is
	log   *slog.Logger
	known atomic.Pointer[reading]

	mu     sync.Mutex         // guards the fields below
	heard  map[string]reading // last of each stream's leader
	warned bool
}

// reading is one moment on both clocks.
type reading struct {
	at    time.Time // by this machine's monotonic clock
	log   time.Time
	slack time.Duration // how far off log may have been then
}

// doubt is how far off the reading may be by now: clocks drift by a tenth of a millisecond a second at most.
func (r *reading) doubt() time.Duration { return r.slack + time.Since(r.at)/10_000 }

// sample is a server's time in an answer.
type sample struct {
	sent, got time.Time // when it was asked and when the answer came, by this machine's monotonic clock
	log       time.Time
}

const (
	skewWarn   = 5 * time.Second // beyond it the operator is told, once
	clockGood  = 2 * time.Millisecond
	clockTries = 10                     // at the start, for as good a time
	sampleSlow = time.Second            // an answer that took longer says too little
	timeAnswer = 300 * time.Millisecond // for whoever may not ask it there is no answer, and a stream is to be made yet, within streamAnswer
)

// now returns the log's time.
func (c *clock) now() time.Time {
	if c.fixed != nil {
		return c.fixed()
	}
	if r := c.known.Load(); r != nil && guard.Clock {
		return r.now()
	}
	return c.local()
}

func (r *reading) now() time.Time { return r.log.Add(time.Since(r.at)) }

// skew returns how far the machine's clock is ahead of the log's time.
func (c *clock) skew() time.Duration { return c.local().Round(0).Sub(c.now().Round(0)) }

// hear takes in what the leader of a stream said. A slow answer says little: it does not take the place of a better one that
// it bears out. Of all leaders the middle one counts, so that one server with a wrong clock moves nothing.
func (c *clock) hear(stream string, s sample) {
	took := s.got.Sub(s.sent)
	if s.log.IsZero() || took > sampleSlow {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard == nil {
		c.heard = make(map[string]reading)
	}
	r := reading{at: s.got, log: s.log.Add(took / 2), slack: took / 2}
	old, ok := c.heard[stream]
	if !ok || r.slack <= old.doubt() || r.now().Sub(old.now()).Abs() > r.slack+old.doubt() {
		c.heard[stream] = r
	}
	all := slices.SortedFunc(maps.Values(c.heard), func(a, b reading) int { return a.now().Compare(b.now()) })
	mid := all[len(all)/2]
	if was := c.known.Load(); was == nil || mid.doubt() < was.doubt() || mid.now().Sub(c.now()).Abs() > mid.doubt()+was.doubt() {
		c.known.Store(&mid)
	}
	if d := c.skew(); d.Abs() > skewWarn && !c.warned {
		c.warned = true
		c.log.Warn("this machine's clock is off: the servers' is used instead", "ahead", d)
	}
}

// Now returns the log's time, by which records are stamped and judged, on every edge the same: use it for every
// wall time that another edge reads. It is as near to the servers' as half a round trip to them, and goes on when
// this machine's clock is set. Subtract such times from one another only: they say nothing to time.Since.
func (b *Broker) Now() time.Time { return b.clock.now() }
