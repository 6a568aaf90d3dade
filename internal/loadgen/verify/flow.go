package verify

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Flow is a stream whose chunks are numbered from 0 by themselves: it must be whole,
// or be shown as aborted. Its methods may be called by many goroutines at a time.
type Flow struct {
	tally *Tally
	name  string
	kinds StreamKinds

	got atomic.Int64 // chunks that came to the receiver read last

	mu      sync.Mutex // guards the fields below
	wrote   int        // chunks
	ending  bool       // its end was sent
	outcome Outcome    // of its end
	broken  []string
}

// StreamKinds are what the parts of a stream are counted as.
type StreamKinds struct{ Chunk, Stream Kind }

// Reading is how far one receiver of a flow is. One goroutine owns it.
type Reading struct {
	flow *Flow
	to   string
	gaps *Gaps
	told int // gaps before it began
	next int

	missed recent[int] // numbers that a later one has overtaken
}

// NewFlow makes a stream of which nothing is written.
func NewFlow(t *Tally, name string, k StreamKinds) *Flow {
	return &Flow{tally: t, name: name, kinds: k}
}

// filler makes a chunk as long as a token or two.
const filler = " é😀\n"

// Write returns the next chunk, as it is written now.
func (f *Flow) Write() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := fmt.Sprintf("%d %d%s", f.wrote, f.tally.Elapsed(), filler)
	f.wrote++
	f.tally.Sent(f.kinds.Chunk)
	return text
}

// End takes that the end is about to be sent.
func (f *Flow) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending = true
}

// Set takes what became of the end: stored, unknown where the stream failed,
// refused where the sender gave it up on purpose.
func (f *Flow) Set(o Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcome = o
	switch n := uint64(f.wrote); o {
	case Stored:
		f.tally.resolved(f.kinds.Chunk, Stored, n)
		for _, why := range f.broken {
			f.tally.Violated(Broken, "%s", why)
		}
	case Unknown:
		f.tally.resolved(f.kinds.Chunk, Unknown, n) // the first of them may have been stored
		f.tally.count(f.kinds.Stream, func(c *counter) { c.Aborted++ })
	case Refused: // on purpose
		f.tally.resolved(f.kinds.Chunk, Unknown, n)
	}
	f.broken = nil
}

// Behind returns how many chunks the receiver has not got yet.
func (f *Flow) Behind() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wrote - int(f.got.Load())
}

// Begin begins to check what a receiver reads, which learns of gaps by g; nil where the flow is.
func (f *Flow) Begin(receiver string, g *Gaps) *Reading {
	if f == nil {
		return nil
	}
	return &Reading{flow: f, to: receiver, gaps: g, told: g.Told()}
}

// Chunk takes the next part that came.
func (r *Reading) Chunk(text string) {
	f := r.flow
	var i int
	var at time.Duration
	if n, err := fmt.Sscanf(text, "%d %d", &i, &at); n != 2 || err != nil || !strings.HasSuffix(text, filler) {
		f.tally.Violated(Altered, "%s: chunk %d came to %s altered", f.name, r.next, r.to)
		r.next++
		return
	}
	switch {
	case i < r.next:
		r.late(i)
		return
	case i > r.next:
		r.miss(i)
	}
	r.next = i + 1
	f.got.Store(int64(r.next))
	f.tally.Arrived(f.kinds.Chunk, at)
}

// Over takes how the stream ended: io.EOF, or an error.
func (r *Reading) Over(err error) {
	f := r.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == io.EOF && !f.ending:
		f.tally.Violated(Truncated, "%s: %s saw an end after chunk %d, and none was sent", f.name, r.to, r.next-1)
	case err == io.EOF:
		r.miss(f.wrote)
	case r.toldOfGap():
	case f.outcome == Stored:
		f.tally.Violated(Broken, "%s", r.broken(err))
	case f.outcome == Pending:
		f.broken = append(f.broken, r.broken(err))
	}
}

// Never takes that the stream had no end by the end of the run.
func (r *Reading) Never() {
	r.flow.tally.Violated(Broken, "%s: %s sees no end of it, after chunk %d", r.flow.name, r.to, r.next-1)
}

// miss counts the chunks before i that did not come.
func (r *Reading) miss(i int) {
	for ; r.next < i; r.next++ {
		r.flow.tally.Missed(r.flow.kinds.Chunk, r.toldOfGap(), "%s: chunk %d never came to %s", r.flow.name, r.next, r.to)
		r.missed.add(r.next)
	}
}

// late takes a chunk that a later one came before, or that came already.
func (r *Reading) late(i int) {
	f := r.flow
	if !r.missed.remove(i) {
		f.tally.Repeated(f.kinds.Chunk, "%s: chunk %d came to %s again, after %d", f.name, i, r.to, r.next-1)
		return
	}
	f.tally.count(f.kinds.Chunk, func(c *counter) { c.Lost-- })
	f.tally.overtaken(f.kinds.Chunk, "%s: chunk %d came to %s after %d", f.name, i, r.to, r.next-1)
}

// toldOfGap reports whether the receiver was told of a gap since it began.
func (r *Reading) toldOfGap() bool { return r.gaps.Told() > r.told }

func (r *Reading) broken(err error) string {
	return fmt.Sprintf("%s: %s saw it fail after chunk %d of %d, though its end is stored: %v", r.flow.name, r.to, r.next-1, r.flow.wrote, err)
}
