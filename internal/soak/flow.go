package soak

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// flow checks a stream: its chunks are numbered from 0, and it must be whole,
// or be shown as aborted.
type flow struct {
	tally *tally
	name  string

	got atomic.Int64 // chunks that came to the receiver read last

	mu     sync.Mutex // guards the fields below
	wrote  int        // chunks
	ending bool       // its end was sent
	result result     // of its end
	broken []string
}

// reading is how far one receiver of a flow is. One goroutine owns it.
type reading struct {
	flow *flow
	to   string
	gaps *gaps
	told int // gaps before it began
	next int

	missed []int // the latest that a later one has overtaken
}

// filler makes a chunk as long as a token or two.
const filler = " é😀\n"

// write returns the next chunk, as it is written now.
func (f *flow) write() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := fmt.Sprintf("%d %d%s", f.wrote, f.tally.clock(), filler)
	f.wrote++
	f.tally.counts[chunk].sent.Add(1)
	return text
}

// end takes note that the end is about to be sent.
func (f *flow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending = true
}

// set takes what became of the end: stored, unknown where the stream failed,
// refused where the sender gave it up on purpose.
func (f *flow) set(r result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.result = r
	c := f.tally.counts[chunk]
	switch r {
	case stored:
		c.stored.Add(uint64(f.wrote))
		for _, why := range f.broken {
			f.tally.violated(Broken, "%s", why)
		}
	case unknown:
		c.unknown.Add(uint64(f.wrote)) // the first of them may have been stored
		f.tally.counts[stream].aborted.Add(1)
	case refused: // on purpose
		c.unknown.Add(uint64(f.wrote))
	}
	f.broken = nil
}

// behind returns how many chunks the receiver has not got yet.
func (f *flow) behind() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wrote - int(f.got.Load())
}

// begin begins to check what a receiver reads.
func (f *flow) begin(to string, g *gaps) *reading {
	return &reading{flow: f, to: to, gaps: g, told: g.told()}
}

// chunk takes a part.
func (r *reading) chunk(text string) {
	f := r.flow
	var i int
	var at time.Duration
	if n, err := fmt.Sscanf(text, "%d %d", &i, &at); n != 2 || err != nil || !strings.HasSuffix(text, filler) {
		f.tally.violated(Altered, "%s: chunk %d came to %s altered", f.name, r.next, r.to)
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
	f.tally.arrived(chunk, at)
}

// miss counts the chunks before i that did not come.
func (r *reading) miss(i int) {
	for ; r.next < i; r.next++ {
		r.flow.tally.lose(chunk, r.gaps.told() > r.told, "%s: chunk %d never came to %s", r.flow.name, r.next, r.to)
		if r.missed = append(r.missed, r.next); len(r.missed) > maxSkips {
			r.missed = r.missed[1:]
		}
	}
}

// late takes a chunk that a later one came before, or that came already.
func (r *reading) late(i int) {
	f := r.flow
	c := f.tally.counts[chunk]
	at := slices.Index(r.missed, i)
	if at < 0 {
		c.duplicated.Add(1)
		f.tally.violated(Duplicated, "%s: chunk %d came to %s again, after %d", f.name, i, r.to, r.next-1)
		return
	}
	r.missed = slices.Delete(r.missed, at, at+1)
	c.lost.Add(-1)
	c.reordered.Add(1)
	f.tally.violated(Reordered, "%s: chunk %d came to %s after %d", f.name, i, r.to, r.next-1)
}

// over takes how the stream ended: io.EOF, or an error.
func (r *reading) over(err error) {
	f := r.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == io.EOF && !f.ending:
		f.tally.violated(Truncated, "%s: %s saw an end after chunk %d, and none was sent", f.name, r.to, r.next-1)
	case err == io.EOF:
		r.miss(f.wrote)
	case r.gaps.told() > r.told:
	case f.result == stored:
		f.tally.violated(Broken, "%s", r.broken(err))
	case f.result == pending:
		f.broken = slices.Concat(f.broken, []string{r.broken(err)})
	}
}

// never takes note that the stream had no end until the run's.
func (r *reading) never() {
	r.flow.tally.violated(Broken, "%s: %s sees no end of it, after chunk %d", r.flow.name, r.to, r.next-1)
}

func (r *reading) broken(err error) string {
	return fmt.Sprintf("%s: %s saw it fail after chunk %d of %d, though its end is stored: %v", r.flow.name, r.to, r.next-1, r.flow.wrote, err)
}
