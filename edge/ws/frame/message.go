package frame

import (
	"io"
	"slices"
	"sync"

	"github.com/agora-relay/agora/internal/buffer"
)

// Message is what a peer has said: a message, of whatever fragments, or a control frame.
type Message struct {
	Op   Op
	Body []byte // good until the next call of the reader, Release included; shorter than Size where that is more than may be kept
	Size int64
}

// large is a message that comes in many pieces.
type large struct {
	*buffer.Buffer
	size int64 // bytes that have come
	op   Op
}

var larges = sync.Pool{New: func() any { return new(large) }}

// Held returns the bytes that are kept of a large message that is coming in. Any goroutine may call it.
func (r *Reader) Held() int64 { return r.held.Load() }

// Next reads what comes next into m. What is whole in the buffer is not copied. Of a message that is larger than keep
// nothing is kept, and one that is larger than most is a [Breach], like all that is against the protocol. Release
// follows a message that is no control frame.
func (r *Reader) Next(src io.Reader, m *Message, keep, most int64) error {
	for {
		h, err := r.head(src)
		if err != nil {
			return err
		}
		if h.op >= Close || h.final && !r.going && h.size <= uint64(min(keep, Window)) {
			m.Op, m.Size = h.op, int64(h.size)
			if m.Body, err = r.Peek(src, int(h.size)); err == nil {
				h.unmask(m.Body, 0)
				r.off += int32(len(m.Body))
			}
			return err
		}
		if err := r.gather(src, &h, keep, most); err != nil {
			return err
		}
		if !r.going {
			m.Op, m.Body, m.Size = r.large.op, r.large.B, r.large.size
			return nil
		}
	}
}

// gather reads the fragment behind a header. A large message begins or continues with it.
func (r *Reader) gather(src io.Reader, h *head, keep, most int64) error {
	if !r.going {
		r.large = larges.Get().(*large)
		*r.large = large{Buffer: buffer.Get(), op: h.op}
	}
	m := r.large
	if h.size > uint64(most) || m.size+int64(h.size) > most {
		return Breach{Code: CloseTooBig, Text: "the message is too large"}
	}
	m.size += int64(h.size)
	r.going = !h.final
	return r.fill(src, h, m.size > keep)
}

// fill appends a fragment to the message, or skips it: then nothing is left of what came before.
func (r *Reader) fill(src io.Reader, h *head, skip bool) error {
	in := r.large.Buffer
	for at := uint64(0); at < h.size; {
		if skip {
			in.B = in.B[:0]
		}
		if len(in.B) == cap(in.B) {
			in.B = slices.Grow(in.B, int(min(h.size-at, max(Window, uint64(len(in.B))))))
		}
		r.held.Store(int64(cap(in.B)))
		room := in.B[len(in.B):cap(in.B)]
		n, err := r.read(src, room[:min(uint64(len(room)), h.size-at)])
		if err != nil {
			return err
		}
		h.unmask(room[:n], at)
		in.B = in.B[:len(in.B)+n]
		at += uint64(n)
	}
	if skip {
		in.B = in.B[:0]
	}
	return nil
}

// Release gives back what was kept of a message, once it was acted on.
func (r *Reader) Release() {
	if r.large == nil {
		return
	}
	buffer.Put(r.large.Buffer)
	r.large.Buffer = nil
	larges.Put(r.large)
	r.large, r.going = nil, false
	r.held.Store(0)
}
