package call

import (
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// reading is what was read of a call's box, and how far the caller has taken it. It is Next's own, but for the
// counters.
type reading struct {
	taken atomic.Int64 // bytes that the caller has taken
	kept  atomic.Int64 // bytes that were read and not taken

	state presence.CallState // as the call was found
	msgs  []agora.Message    // read and not looked at yet
	began bool               // its first part was returned: what follows is of its stream
	first agora.Message      // that part, without its body
	at    uint64             // position of the part that Next returned last
	last  int64              // what that counts
	since int64              // taken since the box was trimmed
}

// keep keeps what was read next.
func (r *reading) keep(msgs []agora.Message) {
	r.msgs = msgs
	for i := range msgs {
		r.kept.Add(counts(&msgs[i]))
	}
}

// next returns the next message that was read, of which there is one.
func (r *reading) next() agora.Message {
	m := r.msgs[0]
	r.msgs = r.msgs[1:]
	r.kept.Add(-counts(&m))
	return m
}

// hand gives a message to the caller.
func (r *reading) hand(m *agora.Message) { r.last, r.at = counts(m), m.Seq }

// done notes that the caller is done with what it was given last, and reports whether so much was read of an answer
// that its box is to be trimmed.
func (r *reading) done() (trim bool) {
	r.taken.Add(r.last)
	r.since += r.last
	r.last = 0
	if trim = r.began && r.since >= trimBytes; trim {
		r.since = 0
	}
	return trim
}

// counts returns what a message counts.
func counts(m *agora.Message) int64 { return int64(len(m.Body) + overhead) }
