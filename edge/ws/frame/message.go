package frame

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora/internal/buffer"
)

// Message is what a peer has said: a message, of whatever fragments, or a control frame.
type Message struct {
	Op   Op
	Body []byte // good until the next call of the reader, Release included; shorter than Size where that is more than may be kept
	Size int64
}

// MessageReader reads messages, and control frames before or between their fragments. The zero value is ready to use; one goroutine uses it at
// a time, but for Held.
type MessageReader struct {
	Reader
	large *large       // until Release; nil while there is none
	held  atomic.Int64 // bytes that are kept for it
}

// large is a message that comes in many pieces.
type large struct {
	*buffer.Buffer
	size int64 // bytes that have come
	op   Op
	more bool // a fragment is to come
}

var larges = sync.Pool{New: func() any { return new(large) }}

// Held returns the bytes that are kept of a large message that is coming in. Any goroutine may call it.
func (r *MessageReader) Held() int64 { return r.held.Load() }

// Quiet reports whether nothing is left, no message is under way, and the peer says little: then it is to be waited for at little cost, by First.
func (r *MessageReader) Quiet() bool { return !r.going() && r.Reader.Quiet() }

// going reports whether a message has begun and not ended.
func (r *MessageReader) going() bool { return r.large != nil && r.large.more }

// Next reads what comes next into m. What is whole in the buffer is not copied. Of a message that is larger than keep nothing is kept, and one that
// is larger than most is a [Breach], like all that is against the protocol. Release follows a message that is no control frame.
func (r *MessageReader) Next(src io.Reader, m *Message, keep, most int64) error {
	for {
		h, err := r.Head(src, r.going())
		if err != nil {
			return err
		}
		if h.Op < Close && (!h.Final || r.going() || h.Size > uint64(min(keep, Window))) {
			if err := r.gather(src, &h, keep, most); err != nil {
				return err
			}
			if r.going() {
				continue
			}
			m.Op, m.Body, m.Size = r.large.op, r.large.B, r.large.size
			return nil
		}
		m.Op, m.Size = h.Op, int64(h.Size)
		if m.Body, err = r.Peek(src, int(h.Size)); err == nil {
			h.Unmask(m.Body, 0)
			r.Skip(len(m.Body))
		}
		return err
	}
}

// gather reads the fragment behind a header. A large message begins or goes on with it.
func (r *MessageReader) gather(src io.Reader, h *Head, keep, most int64) error {
	if !r.going() {
		r.large = larges.Get().(*large)
		*r.large = large{Buffer: buffer.Get(), op: h.Op}
	}
	m := r.large
	if h.Size > uint64(most) || m.size+int64(h.Size) > most {
		return Breach{Code: CloseTooBig, Text: "the message is too large"}
	}
	m.size += int64(h.Size)
	m.more = !h.Final
	return r.fill(src, h, m.size > keep)
}

// fill appends a fragment to the message, or skips it: then nothing is left of what came before.
func (r *MessageReader) fill(src io.Reader, h *Head, skip bool) error {
	in := r.large.Buffer
	for at := uint64(0); at < h.Size; {
		if skip {
			in.B = in.B[:0]
		}
		if len(in.B) == cap(in.B) {
			in.B = slices.Grow(in.B, int(min(h.Size-at, max(Window, uint64(len(in.B))))))
		}
		r.held.Store(int64(cap(in.B)))
		room := in.B[len(in.B):cap(in.B)]
		n, err := r.Read(src, room[:min(uint64(len(room)), h.Size-at)])
		if err != nil {
			return err
		}
		h.Unmask(room[:n], at)
		in.B = in.B[:len(in.B)+n]
		at += uint64(n)
	}
	if skip {
		in.B = in.B[:0]
	}
	return nil
}

// Release gives back what was kept of a message, once it was acted on.
func (r *MessageReader) Release() {
	if r.large == nil {
		return
	}
	buffer.Put(r.large.Buffer)
	r.large.Buffer = nil
	larges.Put(r.large)
	r.large = nil
	r.held.Store(0)
}

// Shut gives the buffers back, between two messages or when nothing is read any more.
func (r *MessageReader) Shut() {
	r.Release()
	r.Reader.Shut()
}
