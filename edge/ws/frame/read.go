package frame

import (
	"encoding/binary"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

const (
	// Window is the most that [Reader.Peek] shows.
	Window   = 4 << 10
	wideSize = 16 << 10
	maxHead  = 14   // of a frame: 2, length, mask
	reserved = 0x70 // bits of a frame's first byte
)

var (
	narrow = sync.Pool{New: func() any { return new([Window]byte) }}
	wide   = sync.Pool{New: func() any { return new([wideSize]byte) }}
)

// Reader reads the messages of a peer, and control frames before or between their fragments. Idle, it keeps a few
// bytes; at work, between Open and Shut, a buffer from a pool, into which one read takes many frames, and a larger one
// while more comes than that holds. The zero value is ready to use; one goroutine uses it at a time, but for Held. Each
// call that may read is given the source again, so that a Reader need not keep it.
type Reader struct {
	buf   []byte // buf[off:end], of Window or wideSize; nil while there is nothing
	off   int32
	end   int32
	first [maxHead]byte // what is read while there is no buffer
	slow  bool          // that came no sooner than Brief after what came before it
	going bool          // a message has begun and not ended
	at    int64         // ticks when something came last

	large *large       // until Release; nil while there is none
	held  atomic.Int64 // bytes that are kept for it
}

// Brief is how long nothing may come before the peer counts as one that says little.
const Brief = 250 * time.Millisecond

// First reads from src without a buffer, and returns what came, which [Reader.Open] begins with. It blocks until
// something has come.
func (r *Reader) First(src io.Reader) ([]byte, error) {
	n, err := r.hear(src, r.first[:])
	return r.first[:n], err
}

// hear reads from src, and notes when something came.
func (r *Reader) hear(src io.Reader, b []byte) (n int, err error) {
	n, err = src.Read(b)
	if n > 0 {
		now := agora.Ticks()
		r.slow, r.at = time.Duration(now-r.at) >= Brief, now
	}
	return n, err
}

// Quiet reports whether nothing is left, no message is under way, and the peer says little: then it is to be waited for
// at little cost, by First.
func (r *Reader) Quiet() bool { return r.off == r.end && r.slow && !r.going }

// Open takes a buffer, and begins with n bytes of what First has read.
func (r *Reader) Open(n int) {
	r.buf = narrow.Get().(*[Window]byte)[:]
	r.off, r.end = 0, int32(copy(r.buf[:], r.first[:n]))
}

// Shut gives the buffers back, between two messages or when nothing is read any more.
func (r *Reader) Shut() {
	r.Release()
	if len(r.buf) == wideSize {
		wide.Put((*[wideSize]byte)(r.buf))
	} else {
		narrow.Put((*[Window]byte)(r.buf))
	}
	r.buf, r.off, r.end = nil, 0, 0
}

// shift moves what is left to the front, of a larger buffer where there is one: this one was filled.
func (r *Reader) shift() {
	if was := r.buf; len(was) == Window {
		r.buf = wide.Get().(*[wideSize]byte)[:]
		r.off, r.end = 0, int32(copy(r.buf, was[r.off:r.end]))
		narrow.Put((*[Window]byte)(was))
		return
	}
	r.off, r.end = 0, int32(copy(r.buf, r.buf[r.off:r.end]))
}

// rewind begins again with a buffer that is used up: a smaller one where what came would have fit that.
func (r *Reader) rewind() {
	if len(r.buf) == wideSize && r.end <= Window {
		wide.Put((*[wideSize]byte)(r.buf))
		r.buf = narrow.Get().(*[Window]byte)[:]
	}
	r.off, r.end = 0, 0
}

// Peek returns the next n bytes, of at most Window, without using them up; it
// blocks until they have come. They are good until the next call.
func (r *Reader) Peek(src io.Reader, n int) ([]byte, error) {
	if int(r.off)+n > len(r.buf) {
		r.shift()
	}
	for int(r.end-r.off) < n {
		if r.off == r.end {
			r.rewind()
		}
		got, err := r.hear(src, r.buf[r.end:])
		r.end += int32(got)
		if err != nil && int(r.end-r.off) < n {
			return nil, err
		}
	}
	return r.buf[r.off:][:n], nil
}

// read reads up to len(b) bytes, at least one, past the buffer where that is empty.
func (r *Reader) read(src io.Reader, b []byte) (n int, err error) {
	if r.off < r.end {
		n = copy(b, r.buf[r.off:r.end])
		r.off += int32(n)
		return n, nil
	}
	if n, err = r.hear(src, b); n > 0 {
		return n, nil
	}
	return 0, err
}

// head is the header of a frame.
type head struct {
	op    Op
	final bool
	size  uint64
	mask  [4]byte
}

// Breach says how a peer broke the protocol, and with which close code it is told so.
type Breach struct {
	Code int
	Text string
}

func (b Breach) Error() string { return b.Text }

func broken(text string) error { return Breach{CloseProtocol, text} }

// head reads the header of the next frame. An error that src does not give is a [Breach].
func (r *Reader) head(src io.Reader) (h head, err error) {
	b, err := r.Peek(src, 2)
	if err != nil {
		return h, err
	}
	h.final, h.op, h.size = b[0]&Final != 0, Op(b[0]&0xf), uint64(b[1]&0x7f)
	size := 2 + 4
	switch {
	case b[0]&reserved != 0:
		return h, broken("reserved bits are set")
	case b[1]&masked == 0:
		return h, broken("frames of a client are masked")
	case h.op >= Close && h.op <= Pong:
		if !h.final || h.size > maxControl {
			return h, broken("a control frame is too long, or a fragment")
		}
	case h.op > Binary:
		return h, broken("unknown opcode")
	case (h.op == More) != r.going:
		return h, broken("a fragment does not follow")
	}
	switch h.size {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if b, err = r.Peek(src, size); err != nil {
		return h, err
	}
	switch h.size {
	case 126:
		h.size = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		if h.size = binary.BigEndian.Uint64(b[2:]); h.size > 1<<62 {
			return h, broken("the length of a frame is not one")
		}
	}
	h.mask = [4]byte(b[size-4:])
	r.off += int32(size)
	return h, nil
}

const masked = 0x80 // bit of a frame's second byte

// unmask takes the frame's mask off b, which begins at byte at of its payload.
func (h *head) unmask(b []byte, at uint64) {
	half := bits.RotateLeft32(binary.LittleEndian.Uint32(h.mask[:]), -8*int(at&3))
	word := uint64(half)<<32 | uint64(half)
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
	}
	for i := range b {
		b[i] ^= byte(word >> (8 * i))
	}
}

// LonePong returns the payload of b as a number where b is one pong of a client's, whole, with eight bytes, as the
// pongs are that answer pings with a number.
func LonePong(b []byte) (data uint64, ok bool) {
	if len(b) != 2+4+8 || b[0] != Final|byte(Pong) || b[1] != masked|8 {
		return 0, false
	}
	mask := binary.BigEndian.Uint32(b[2:])
	return binary.BigEndian.Uint64(b[6:]) ^ (uint64(mask)<<32 | uint64(mask)), true
}
