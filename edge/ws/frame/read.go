package frame

import (
	"encoding/binary"
	"io"
	"sync"
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

// Reader reads the frames of a peer. Idle, it keeps a few bytes; at work, between Open and Shut, a buffer from a pool, into which one
// read takes many frames, and a larger one while more comes than that holds. The zero value is ready to use; one goroutine uses it at a time. Each call that may
// read is given the source again, so that a Reader need not keep it.
type Reader struct {
	buf   []byte // buf[off:end], of Window or wideSize; nil while there is nothing
	off   int32
	end   int32
	first [maxHead]byte // what is read while there is no buffer
	slow  bool          // that came no sooner than Brief after what came before it
	at    int64         // ticks when something came last
}

// Brief is how long nothing may come before the peer counts as one that says little.
const Brief = 250 * time.Millisecond

// First reads from src without a buffer, and returns what came, which [Reader.Open] begins with. It blocks until something has come.
func (r *Reader) First(src io.Reader) ([]byte, error) {
	n, err := src.Read(r.first[:])
	r.came(n)
	return r.first[:n], err
}

// Quiet reports whether nothing is left and the peer says little: then it is to be waited for at little cost, by First.
func (r *Reader) Quiet() bool { return r.off == r.end && r.slow }

// came notes that n bytes came just now.
func (r *Reader) came(n int) {
	if n > 0 {
		now := agora.Ticks()
		r.slow, r.at = time.Duration(now-r.at) >= Brief, now
	}
}

// Open takes a buffer, and begins with n bytes of what First has read.
func (r *Reader) Open(n int) {
	r.buf = narrow.Get().(*[Window]byte)[:]
	r.off, r.end = 0, int32(copy(r.buf[:], r.first[:n]))
}

// Shut gives the buffer back.
func (r *Reader) Shut() {
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

// rewind begins anew with a buffer that is used up: a smaller one where what came would have fit that.
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
		got, err := src.Read(r.buf[r.end:])
		r.came(got)
		r.end += int32(got)
		if err != nil && int(r.end-r.off) < n {
			return nil, err
		}
	}
	return r.buf[r.off:][:n], nil
}

// Skip says that n bytes, which Peek has shown, are used up.
func (r *Reader) Skip(n int) { r.off += int32(n) }

// Read reads up to len(b) bytes, at least one, past the buffer where that is empty.
func (r *Reader) Read(src io.Reader, b []byte) (n int, err error) {
	if r.off < r.end {
		n = copy(b, r.buf[r.off:r.end])
		r.Skip(n)
		return n, nil
	}
	n, err = src.Read(b)
	r.came(n)
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// Head is the header of a frame.
type Head struct {
	Op    Op
	Final bool
	Size  uint64
	mask  [4]byte
}

// Breach says how a peer broke the protocol, and with which close code it is told so.
type Breach struct {
	Code int
	Text string
}

func (b Breach) Error() string { return b.Text }

func broken(text string) error { return Breach{CloseProtocol, text} }

// Head reads the header of the next frame. going tells whether a message has begun and not ended. An error that src does not give is a [Breach].
func (r *Reader) Head(src io.Reader, going bool) (h Head, err error) {
	b, err := r.Peek(src, 2)
	if err != nil {
		return h, err
	}
	h.Final, h.Op, h.Size = b[0]&Final != 0, Op(b[0]&0xf), uint64(b[1]&0x7f)
	size := 2 + 4
	switch {
	case b[0]&reserved != 0:
		return h, broken("reserved bits are set")
	case b[1]&masked == 0:
		return h, broken("frames of a client are masked")
	case h.Op >= Close && h.Op <= Pong:
		if !h.Final || h.Size > maxControl {
			return h, broken("a control frame is too long, or a fragment")
		}
	case h.Op > Binary:
		return h, broken("unknown opcode")
	case (h.Op == More) != going:
		return h, broken("a fragment does not follow")
	}
	switch h.Size {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if b, err = r.Peek(src, size); err != nil {
		return h, err
	}
	switch h.Size {
	case 126:
		h.Size = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		if h.Size = binary.BigEndian.Uint64(b[2:]); h.Size > 1<<62 {
			return h, broken("the length of a frame is not one")
		}
	}
	h.mask = [4]byte(b[size-4:])
	r.Skip(size)
	return h, nil
}

const masked = 0x80 // bit of a frame's second byte

// Unmask takes the frame's mask off b, which begins at byte at of its payload.
func (h *Head) Unmask(b []byte, at uint64) {
	var m [8]byte
	for i := range m {
		m[i] = h.mask[(at+uint64(i))&3]
	}
	word := binary.LittleEndian.Uint64(m[:])
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= m[i]
	}
}

// LonePong returns the payload of b as a number where b is one pong of a client's, whole, with eight bytes, as the pongs are that answer pings with a number.
func LonePong(b []byte) (data uint64, ok bool) {
	if len(b) != 2+4+8 || b[0] != Final|byte(Pong) || b[1] != masked|8 {
		return 0, false
	}
	mask := binary.BigEndian.Uint32(b[2:])
	return binary.BigEndian.Uint64(b[6:]) ^ (uint64(mask)<<32 | uint64(mask)), true
}
