package relay

import (
	"strings"

	"github.com/agora-relay/agora"
)

// pastStreams is the streams of a sender that are not open any more, as far as it keeps them in mind. The lock of its laneSet guards it.
type pastStreams struct {
	over      fifo[uint64]   // refused or cancelled: their later parts are dropped in silence; with the number of the cancel, 0 for none
	ended     fifo[struct{}] // came to their normal end
	concluded fifo[string]   // ended by an answer, with its id
	unopened  *fifo[string]  // a part was to open them that was refused, with its id; nil while there was none
}

// drops reports whether a part belongs to a stream that was answered for
// already. A new start makes it a stream again; an end ends the silence. What stands before a cancel by its number n may have been
// refused for the moment: it comes again, and is answered.
func (p *pastStreams) drops(k streamKey, part agora.Part, n uint64) bool {
	if part == agora.Whole || !p.over.has(k) || n > 0 && n < p.over.in[k] {
		return false
	}
	if part == agora.Start || part.Ends() {
		p.over.remove(k)
	}
	return part != agora.Start
}

// silence has the later parts of a stream be dropped, as it is cancelled by the part with a number; false where they are already.
func (p *pastStreams) silence(k streamKey, n uint64) bool {
	if p.over.has(k) {
		return false
	}
	p.over.put(k, n)
	return true
}

// unopen notes the id of a message with which a stream was to open, and which was refused.
func (p *pastStreams) unopen(k streamKey, id string) {
	if p.unopened == nil {
		p.unopened = new(fifo[string])
	}
	p.unopened.put(k, id)
}

// reopens reports whether a message of a stream that was refused is the one with which it was to open, said again, and whether it may open now: not where
// another one was dropped in silence, as it would be missing.
func (p *pastStreams) reopens(k streamKey, id string, silent bool) (again, may bool) {
	if p.unopened == nil {
		return false, false
	}
	first, known := p.unopened.in[k]
	if again = id != "" && strings.TrimSuffix(first, missing) == id; again {
		return true, first == id
	}
	if known && silent {
		p.unopened.put(k, strings.TrimSuffix(first, missing)+missing)
	}
	return false, false
}

// missing stands behind the id of a message behind which others were dropped in silence.
const missing = "\x00"

// fifo is a set of the streams added last, each with something about it.
type fifo[T any] struct {
	in    map[streamKey]T
	order []streamKey
}

// remembered is how many refused, cancelled or ended streams a sender keeps in mind.
const remembered = 1024

func (f *fifo[T]) has(k streamKey) bool {
	_, ok := f.in[k]
	return ok
}

func (f *fifo[T]) add(k streamKey) {
	var nothing T
	f.put(k, nothing)
}

// put adds a stream, or replaces what is said of it.
func (f *fifo[T]) put(k streamKey, about T) {
	if f.in == nil {
		f.in = map[streamKey]T{}
	}
	known := f.has(k)
	if f.in[k] = about; known {
		return
	}
	f.order = append(f.order, k)
	for len(f.order) > remembered {
		delete(f.in, f.order[0])
		f.order = f.order[1:]
	}
}

func (f *fifo[T]) remove(k streamKey) { delete(f.in, k) }
