package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// kind is what is counted apart.
type kind int

const (
	message kind = iota // one-shots
	stream              // beginnings of streams, between agents
	chunk               // parts of streams, of events and of replies
	request             // questions
	reply               // answers to them
	event               // in spaces, streamed or not
	kinds
)

func (k kind) String() string {
	return [...]string{"message", "stream", "chunk", "request", "reply", "event"}[k]
}

// maxListed is how many violations are kept in words.
const maxListed = 100

// Violations of what Agora promises.
const (
	Lost       = "lost"       // stored, and passed over in silence
	Duplicated = "duplicated" // came twice
	Reordered  = "reordered"  // came behind what was sent later, or members of a space saw two orders
	Truncated  = "truncated"  // a stream without its rest was shown as whole
	Broken     = "broken"     // a stream whose end was stored was shown as aborted, or shows no end
	Untrue     = "untrue"     // came although the sender was told that it is not stored
	Altered    = "altered"    // something that nobody sent in this way
	Ended      = "ended"      // a client gave up its agent by itself
)

// Violation is one breach of a promise.
type Violation struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // one of the constants
	Text string    `json:"text"` // who, to whom, and which number
}

// tally counts. All its methods may be called by many goroutines at a time.
type tally struct {
	began  time.Time
	counts [kinds]*counter
	gaps   atomic.Uint64

	mu     sync.Mutex // guards the fields below
	listed []Violation
	total  uint64
	errors map[string]uint64 // by code
}

// counter counts one kind.
type counter struct {
	sent, stored, refused, unknown atomic.Uint64
	delivered, told, aborted       atomic.Uint64
	lost, duplicated, reordered    atomic.Int64

	mu   sync.Mutex // guards late
	late *hdrhistogram.Histogram
}

// maxLatency is the longest latency that is told from longer ones.
const maxLatency = 10 * time.Minute

func newTally() *tally {
	t := &tally{began: time.Now(), errors: map[string]uint64{}}
	for k := range t.counts {
		t.counts[k] = newCounter()
	}
	return t
}

func newCounter() *counter {
	return &counter{late: hdrhistogram.New(1, maxLatency.Microseconds(), 3)}
}

// clock is the time that has passed, which messages carry.
func (t *tally) clock() time.Duration { return time.Since(t.began) }

// arrived counts a delivery of what was sent at a time of the clock.
func (t *tally) arrived(k kind, sent time.Duration) {
	c := t.counts[k]
	c.delivered.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.late.RecordValue(min(max(t.clock()-sent, 0), maxLatency).Microseconds()) // in range by the line itself
}

// result counts what became of something sent.
func (t *tally) result(k kind, r result) {
	switch c := t.counts[k]; r {
	case stored:
		c.stored.Add(1)
	case refused:
		c.refused.Add(1)
	case unknown:
		c.unknown.Add(1)
	}
}

// outcome returns what an error of the client says of what was sent, and counts it.
func (t *tally) outcome(err error) result {
	if err == nil {
		return stored
	}
	r, name := meaning(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors[name]++
	return r
}

// meaning tells whether an error says that nothing was stored, and its name.
func meaning(err error) (result, string) {
	e, ok := errors.AsType[*agora.Error](err)
	switch {
	case errors.Is(err, client.ErrUnknown):
		return unknown, "unknown"
	case errors.Is(err, client.ErrCancelled):
		return unknown, "cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unknown, "given up"
	case !ok:
		return unknown, "client over"
	}
	switch e.Code {
	case agora.StreamAborted, agora.Timeout, agora.AgentExists, agora.Unauthorized:
		return unknown, string(e.Code)
	}
	return refused, string(e.Code)
}

// violated writes a violation down.
func (t *tally) violated(what, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total++
	if len(t.listed) < maxListed {
		t.listed = append(t.listed, Violation{At: time.Now(), Kind: what, Text: fmt.Sprintf(format, args...)})
	}
}

// lose counts what is stored and did not come: told says that a gap was told where it was.
func (t *tally) lose(k kind, told bool, format string, args ...any) {
	if told {
		t.counts[k].told.Add(1)
		return
	}
	t.counts[k].lost.Add(1)
	t.violated(Lost, format, args...)
}
