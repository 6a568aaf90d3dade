package ws

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/agora-relay/agora"
)

// The other half of frame.go: how frames of a peer come in (RFC 6455). Idle, a connection
// keeps nothing of it but a few bytes; at work, a buffer from a pool, into which one read
// takes many frames, and a larger one while more comes than that holds.

const (
	intakeSize = 4 << 10
	wideSize   = 16 << 10
	maxHead    = 14   // of a frame: 2, length, mask
	reserved   = 0x70 // bits of a frame's first byte
)

var (
	intakes = sync.Pool{New: func() any { return new([intakeSize]byte) }}
	wides   = sync.Pool{New: func() any { return new([wideSize]byte) }}
)

// intake is what has come of a peer and was not used yet. The reading goroutine owns it.
type intake struct {
	buf   []byte // buf[off:end], of intakeSize or wideSize; nil while there is nothing
	off   int32
	end   int32
	first [maxHead]byte // what is read while there is no buffer
	slow  bool          // that came no sooner than brief after what came before it
	at    int64         // ticks when something came last
}

// brief is how long nothing may come for the next to be waited for with all that handling it takes.
const brief = 250 * time.Millisecond

// quiet tells whether nothing is left and the peer says little: then it is to be
// waited for at little cost.
func (in *intake) quiet() bool { return in.off == in.end && in.slow }

// came notes that n bytes came just now.
func (in *intake) came(c *conn, n int) {
	if n > 0 {
		now := agora.Ticks()
		in.slow, in.at = time.Duration(now-in.at) >= brief, now
		c.alive()
	}
}

// open begins with what was read without a buffer.
func (in *intake) open(n int) {
	in.buf = intakes.Get().(*[intakeSize]byte)[:]
	in.off, in.end = 0, int32(copy(in.buf[:], in.first[:n]))
}

// shut gives the buffer back.
func (in *intake) shut() {
	if len(in.buf) == wideSize {
		wides.Put((*[wideSize]byte)(in.buf))
	} else {
		intakes.Put((*[intakeSize]byte)(in.buf))
	}
	in.buf, in.off, in.end = nil, 0, 0
}

// shift moves what is left to the front, of a larger buffer where there is one: this one was filled.
func (in *intake) shift() {
	if was := in.buf; len(was) == intakeSize {
		in.buf = wides.Get().(*[wideSize]byte)[:]
		in.off, in.end = 0, int32(copy(in.buf, was[in.off:in.end]))
		intakes.Put((*[intakeSize]byte)(was))
		return
	}
	in.off, in.end = 0, int32(copy(in.buf, in.buf[in.off:in.end]))
}

// rewind begins anew with a buffer that is used up: a smaller one where what came would have fit that.
func (in *intake) rewind() {
	if len(in.buf) == wideSize && in.end <= intakeSize {
		wides.Put((*[wideSize]byte)(in.buf))
		in.buf = intakes.Get().(*[intakeSize]byte)[:]
	}
	in.off, in.end = 0, 0
}

// have returns the next n bytes, of at most intakeSize, without using them up; it
// blocks until they have come. They are good until the next call.
func (c *conn) have(n int) ([]byte, error) {
	in := &c.in
	if int(in.off)+n > len(in.buf) {
		in.shift()
	}
	for int(in.end-in.off) < n {
		if in.off == in.end {
			in.rewind()
		}
		got, err := c.socket.Read(in.buf[in.end:])
		in.came(c, got)
		in.end += int32(got)
		if err != nil && int(in.end-in.off) < n {
			return nil, err
		}
	}
	return in.buf[in.off:][:n], nil
}

// used says that n bytes are used up.
func (in *intake) used(n int) { in.off += int32(n) }

// draw reads up to len(b) bytes, at least one, past the buffer where that is empty.
func (c *conn) draw(b []byte) (n int, err error) {
	in := &c.in
	if in.off < in.end {
		n = copy(b, in.buf[in.off:in.end])
		in.used(n)
		return n, nil
	}
	n, err = c.socket.Read(b)
	in.came(c, n)
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// head is the header of a frame.
type head struct {
	op    opcode
	final bool
	size  uint64
	mask  [4]byte
}

// breach says how a peer broke the protocol, and with which close code it is told so.
type breach struct {
	code int
	text string
}

func (b breach) Error() string { return b.text }

func broken(text string) error { return breach{closeProtocol, text} }

// head reads the header of the next frame. going tells whether a message has begun and not ended.
func (c *conn) head(going bool) (h head, err error) {
	b, err := c.have(2)
	if err != nil {
		return h, err
	}
	h.final, h.op, h.size = b[0]&final != 0, opcode(b[0]&0xf), uint64(b[1]&0x7f)
	size := 2 + 4
	switch {
	case b[0]&reserved != 0:
		return h, broken("reserved bits are set")
	case b[1]&0x80 == 0:
		return h, broken("frames of a client are masked")
	case h.op >= opClose && h.op <= opPong:
		if !h.final || h.size > maxControl {
			return h, broken("a control frame is too long, or a fragment")
		}
	case h.op > opBinary:
		return h, broken("unknown opcode")
	case (h.op == opMore) != going:
		return h, broken("a fragment does not follow")
	}
	switch h.size {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if b, err = c.have(size); err != nil {
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
	c.in.used(size)
	return h, nil
}

// unmask takes the mask off b, which begins at byte at of a payload.
func unmask(b []byte, mask [4]byte, at uint64) {
	var m [8]byte
	for i := range m {
		m[i] = mask[(at+uint64(i))&3]
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
