package jslog

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/guard"
)

// Clock tells the log's time: that of the servers, which stamp what is stored. A machine's own clock may be
// hours off, and may be set at any time: it is asked for nothing but how much time has passed.
type Clock struct {
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

// Sample is a server's time in an answer.
type Sample struct {
	Sent, Got time.Time // when it was asked and when the answer came, by this machine's monotonic clock
	Log       time.Time
}

const (
	skewWarn   = 5 * time.Second // beyond it the operator is told, once
	clockGood  = 2 * time.Millisecond
	clockTries = 10                     // at the start, for as good a time
	sampleSlow = time.Second            // an answer that took longer says too little
	timeAnswer = 300 * time.Millisecond // for whoever may not ask it there is no answer, and a stream is to be made yet, within streamAnswer
)

// NewClock returns a clock that says what local does until it learns of the log's time; fixed, where it is not nil, is
// the log's time.
func NewClock(local, fixed func() time.Time, log *slog.Logger) *Clock {
	return &Clock{local: local, fixed: fixed, log: log}
}

// IsKnown reports whether a server has told its time.
func (c *Clock) IsKnown() bool { return c.known.Load() != nil }

// Now returns the log's time.
func (c *Clock) Now() time.Time {
	if c.fixed != nil {
		return c.fixed()
	}
	if r := c.known.Load(); r != nil && guard.Clock {
		return r.now()
	}
	return c.local()
}

func (r *reading) now() time.Time { return r.log.Add(time.Since(r.at)) }

// Skew returns how far the machine's clock is ahead of the log's time.
func (c *Clock) Skew() time.Duration { return c.local().Round(0).Sub(c.Now().Round(0)) }

// Hear takes in what the leader of a stream said. A slow answer says little: it does not take the place of a better one
// that it bears out. Of all leaders the middle one counts, so that one server with a wrong clock moves nothing.
func (c *Clock) Hear(stream string, s Sample) {
	took := s.Got.Sub(s.Sent)
	if s.Log.IsZero() || took > sampleSlow {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard == nil {
		c.heard = make(map[string]reading)
	}
	r := reading{at: s.Got, log: s.Log.Add(took / 2), slack: took / 2}
	old, ok := c.heard[stream]
	if !ok || r.slack <= old.doubt() || r.now().Sub(old.now()).Abs() > r.slack+old.doubt() {
		c.heard[stream] = r
	}
	all := slices.SortedFunc(maps.Values(c.heard), func(a, b reading) int { return a.now().Compare(b.now()) })
	mid := all[len(all)/2]
	if was := c.known.Load(); was == nil || mid.doubt() < was.doubt() || mid.now().Sub(c.Now()).Abs() > mid.doubt()+was.doubt() {
		c.known.Store(&mid)
	}
	if d := c.Skew(); d.Abs() > skewWarn && !c.warned {
		c.warned = true
		c.log.Warn("this machine's clock is off: the servers' is used instead", "ahead", d)
	}
}

// AskTime has the server that the Broker is connected to tell its time, before there is a stream whose leader could be
// asked. It needs a right that not every account has: without it the machine's clock must do.
func (c *Client) AskTime(ctx context.Context) {
	ctx, cancel := c.within(ctx, timeAnswer)
	defer cancel()
	s := Sample{Sent: time.Now()}
	m, err := c.nc.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	var v struct {
		Server struct {
			Time time.Time `json:"time"`
		} `json:"server"`
	}
	if err != nil || json.Unmarshal(m.Data, &v) != nil {
		return
	}
	s.Got = time.Now()
	half := s.Got.Sub(s.Sent) / 2
	c.cfg.Clock.known.Store(&reading{at: s.Got, log: v.Server.Time.Add(half), slack: half})
}

// SetClock asks the leader of a stream until the time is well known, or a few times.
func (c *Client) SetClock(ctx context.Context, stream string) {
	for range clockTries {
		if r := c.cfg.Clock.known.Load(); r != nil && r.slack < clockGood {
			return
		}
		if _, err := c.State(ctx, stream, ""); err != nil {
			return // the watchers ask again
		}
	}
}
