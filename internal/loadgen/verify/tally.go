package verify

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Kind is what is counted apart.
type Kind string

// Outcome is what a sender was told of something that it sent.
type Outcome uint8

// Outcomes.
const (
	Pending Outcome = iota // nothing yet
	Stored
	Refused // it is not stored
	Unknown // nobody can know
)

// Violations of what Agora promises.
const (
	Lost       = "lost"       // stored, and passed over in silence
	Duplicated = "duplicated" // came twice
	Reordered  = "reordered"  // came behind what was sent later, or members of a space saw two orders
	Truncated  = "truncated"  // a stream without its rest was shown as whole
	Broken     = "broken"     // a stream whose end was stored was shown as aborted, or shows no end
	Untrue     = "untrue"     // came although the sender or the receiver was told that it does not
	Altered    = "altered"    // something that nobody sent in this way
)

// Violation is one breach of a promise.
type Violation struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // one of the constants, or a caller's own
	Text string    `json:"text"` // who, to whom, and which number
}

// maxListed is how many violations are kept in words.
const maxListed = 100

// Tally counts what was sent, what arrived, and violations. Its methods may be called by many goroutines at a time.
type Tally struct {
	clock func() time.Time
	began time.Time

	mu     sync.Mutex // guards the fields below
	counts map[Kind]*counter
	listed []Violation
	told   int // of those listed, those that News has returned
	total  uint64
}

// New makes a tally of these kinds, and of no others, whose time is that of clock.
func New(clock func() time.Time, kinds ...Kind) *Tally {
	t := &Tally{clock: clock, began: clock(), counts: map[Kind]*counter{}}
	for _, k := range kinds {
		t.counts[k] = newCounter()
	}
	return t
}

// Elapsed returns the time since the tally was made.
func (t *Tally) Elapsed() time.Duration { return t.clock().Sub(t.began) }

// Sent counts something sent.
func (t *Tally) Sent(k Kind) { t.count(k, func(c *counter) { c.Sent++ }) }

// Resolved counts what became of something sent.
func (t *Tally) Resolved(k Kind, o Outcome) { t.resolved(k, o, 1) }

func (t *Tally) resolved(k Kind, o Outcome, n uint64) {
	t.count(k, func(c *counter) {
		switch o {
		case Stored:
			c.Stored += n
		case Refused:
			c.Refused += n
		case Unknown:
			c.Unknown += n
		}
	})
}

// Arrived counts a delivery of what was sent after so much of the tally's time.
func (t *Tally) Arrived(k Kind, sent time.Duration) {
	t.count(k, func(c *counter) {
		c.Delivered++
		c.late(t.Elapsed() - sent)
	})
}

// Missed counts what is stored and did not come: as told where its receiver was told so, else as a violation.
func (t *Tally) Missed(k Kind, told bool, format string, args ...any) {
	t.count(k, func(c *counter) {
		if told {
			c.Told++
			return
		}
		c.Lost++
		t.violated(Lost, format, args...)
	})
}

// Repeated counts what came again.
func (t *Tally) Repeated(k Kind, format string, args ...any) {
	t.count(k, func(c *counter) {
		c.Duplicated++
		t.violated(Duplicated, format, args...)
	})
}

// overtaken counts what came behind what was sent later.
func (t *Tally) overtaken(k Kind, format string, args ...any) {
	t.count(k, func(c *counter) {
		c.Reordered++
		t.violated(Reordered, format, args...)
	})
}

// Violated writes a violation down.
func (t *Tally) Violated(what, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.violated(what, format, args...)
}

// Violations returns how many violations there are, and the first hundred in words.
func (t *Tally) Violations() (total uint64, listed []Violation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total, slices.Clone(t.listed)
}

// News returns the violations that it has not returned before, as far as they are listed.
func (t *Tally) News() []Violation {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := slices.Clone(t.listed[t.told:])
	t.told = len(t.listed)
	return news
}

func (t *Tally) count(k Kind, f func(*counter)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.counts[k])
}

func (t *Tally) violated(what, format string, args ...any) {
	t.total++
	if len(t.listed) < maxListed {
		t.listed = append(t.listed, Violation{At: t.clock(), Kind: what, Text: fmt.Sprintf(format, args...)})
	}
}
