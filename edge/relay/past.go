package relay

import (
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

// pastStreams is the streams of a sender that are not open any more, as far as it keeps them in mind. The lock of its laneSet guards it.
type pastStreams struct {
	over      fifo  // refused or cancelled: their later parts are dropped in silence
	ended     fifo  // came to their normal end
	concluded fifo  // ended by an answer, with its id
	unopened  *fifo // a part was to open them that was refused, with its id; nil while there was none
}

// drops reports whether a part belongs to a stream that was answered for
// already. A new start makes it a stream again; an end ends the silence.
func (p *pastStreams) drops(k streamKey, part agora.Part, n uint64) bool {
	if part == agora.Whole || !p.over.has(k) || n > 0 && n < p.cancelled(k) {
		return false
	}
	if part == agora.Start || part.Ends() {
		p.over.remove(k)
	}
	return part != agora.Start
}

// cancel notes that a stream was cancelled by the part of a number. What stands before that may have been refused for the moment:
// it comes again, and is answered.
func (p *pastStreams) cancel(k streamKey, n uint64) { p.over.put(k, strconv.FormatUint(n, 10)) }

// cancelled returns the number of the part that cancelled a stream, 0 where there is none.
func (p *pastStreams) cancelled(k streamKey) uint64 {
	n, _ := strconv.ParseUint(p.over.in[k], 10, 64)
	return n
}

// unopen notes the id of a message with which a stream was to open, and which was refused.
func (p *pastStreams) unopen(k streamKey, id string) {
	if p.unopened == nil {
		p.unopened = new(fifo)
	}
	p.unopened.put(k, id)
}

// reopens is [Sender.Reopens].
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

// fifo is a set of the streams added last, each with a word about it.
type fifo struct {
	in    map[streamKey]string
	order []streamKey
}

// remembered is how many refused, cancelled or ended streams a sender keeps in mind.
const remembered = 1024

func (f *fifo) has(k streamKey) bool {
	_, ok := f.in[k]
	return ok
}

func (f *fifo) add(k streamKey) { f.put(k, "") }

// put adds a stream, or replaces what is said of it.
func (f *fifo) put(k streamKey, word string) {
	if f.in == nil {
		f.in = map[streamKey]string{}
	}
	known := f.has(k)
	if f.in[k] = word; known {
		return
	}
	f.order = append(f.order, k)
	for len(f.order) > remembered {
		delete(f.in, f.order[0])
		f.order = f.order[1:]
	}
}

func (f *fifo) remove(k streamKey) { delete(f.in, k) }
