package ws

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// requests holds frames to decode into: an idle connection keeps none.
var requests = sync.Pool{New: func() any { return new(wire.Frame) }}

// errClosed says that the peer has sent its close frame.
var errClosed = errors.New("the peer closed the connection")

// await waits for the peer at little cost: this goroutine does nothing else but take the pongs of an idle one, so its
// stack stays small. Whatever else comes is for another one, with the stack that it takes.
func (c *conn) await() {
	for {
		n, err := c.socket.Read(c.in.first[:])
		if n == 0 && err != nil {
			c.door.work.Go(func() { c.finish(err) })
			return
		}
		if !c.idlePong(c.in.first[:n]) {
			c.door.work.Go(func() { c.listen(n) })
			return
		}
		c.in.came(c, n)
	}
}

// idlePong takes what has come where it is a whole pong which says no more than that the peer is there.
func (c *conn) idlePong(b []byte) bool {
	s := c.session.Load()
	if s == nil || len(b) != 2+4+8 || b[0] != final|byte(opPong) || b[1] != 0x80|8 {
		return false
	}
	mask := binary.BigEndian.Uint32(b[2:])
	return s.IdlePong(binary.BigEndian.Uint64(b[6:]) ^ (uint64(mask)<<32 | uint64(mask)))
}

// listen serves what comes, of which n bytes are read. When the peer has little to say it ends, and
// has another goroutine await more.
func (c *conn) listen(n int) {
	c.in.open(n)
	c.in.came(c, n)
	var err error
	for err == nil && !c.in.quiet() {
		err = c.message()
	}
	c.in.shut()
	if err != nil {
		c.finish(err)
		return
	}
	c.rest()
	c.door.work.Go(c.await)
}

// message reads one message and acts on it, and on control frames before or inside it. One that
// has all come is not copied.
func (c *conn) message() error {
	h, err := c.head(false)
	if err != nil {
		return err
	}
	switch {
	case h.op >= opClose:
		return c.answer(h)
	case !h.final || h.size > intakeSize || h.size > uint64(c.door.node.frame):
		return c.gather(h)
	}
	b, err := c.have(int(h.size))
	if err != nil {
		return err
	}
	unmask(b, h.mask, 0)
	c.in.used(len(b))
	c.serve(h.op, b, int64(len(b)))
	return nil
}

// gather reads a message that comes in many pieces.
func (c *conn) gather(h head) (err error) {
	in := getBuffer()
	defer putBuffer(in)
	defer c.reading.Store(0)
	op, size := h.op, int64(0)
	for {
		if uint64(size)+h.size > uint64(c.door.cfg.MaxMessage) {
			return breach{closeTooBig, "the message is too large"}
		}
		size += int64(h.size)
		if err := c.fill(in, h, size); err != nil {
			return err
		}
		if h.final {
			break
		}
		if h, err = c.following(); err != nil {
			return err
		}
	}
	c.serve(op, in.b, size)
	return nil
}

// following reads the header of a message's next fragment, and acts on control frames before it.
func (c *conn) following() (head, error) {
	for {
		h, err := c.head(true)
		if err == nil && h.op >= opClose {
			err = c.answer(h)
		} else if err == nil {
			return h, nil
		}
		if err != nil {
			return h, err
		}
	}
}

// fill appends a fragment to in, after which the message has a size. One that is too large
// is skipped: then in has less than that.
func (c *conn) fill(in *buffer, h head, size int64) error {
	skip := size > int64(c.door.node.frame)
	if skip {
		in.b = in.b[:0]
	}
	for at := uint64(0); at < h.size; {
		if skip {
			in.b = in.b[:0]
		}
		if len(in.b) == cap(in.b) {
			in.b = slices.Grow(in.b, int(min(h.size-at, max(intakeSize, uint64(len(in.b))))))
		}
		c.reading.Store(int64(cap(in.b)))
		c.MarkActive()
		room := in.b[len(in.b):cap(in.b)]
		n, err := c.draw(room[:min(uint64(len(room)), h.size-at)])
		if err != nil {
			return err
		}
		unmask(room[:n], h.mask, at)
		in.b = in.b[:len(in.b)+n]
		at += uint64(n)
	}
	if skip {
		in.b = in.b[:0]
	}
	return nil
}

// serve acts on a message of a size; b is shorter where it was skipped, and is used again afterwards.
func (c *conn) serve(op opcode, b []byte, size int64) {
	var begun int64 // of a frame that is timed
	if c.door.stats.FramesIn.Add(1)%sampled == 1 {
		begun = agora.Ticks()
	}
	c.door.stats.BytesIn.Add(size)
	if !c.enter() {
		return
	}
	defer c.leave()
	c.traffic.framesIn++
	c.traffic.bytesIn += size
	switch {
	case op != opText:
		c.refuse(&wire.Frame{}, agora.Errorf(agora.InvalidRequest, "binary frames are not understood; send JSON as text"))
	case size > int64(len(b)):
		c.refuse(&wire.Frame{}, agora.Errorf(agora.MessageTooLarge, "frame of %d bytes is larger than %d", size, c.door.node.frame))
	default:
		c.act(b, begun)
	}
}

// act decodes a frame and does what it says. b is used again afterwards. begun is when the frame was read, where that is timed.
func (c *conn) act(b []byte, begun int64) {
	f := requests.Get().(*wire.Frame)
	defer requests.Put(f)
	f.To, f.StreamID = c.to, c.stream // most often the next frame's as well: they are not made anew
	err := wire.DecodeRequest(b, f, c.door.cfg.Limits)
	if err == nil {
		c.to, c.stream = f.To, f.StreamID
		err = c.handle(f)
	}
	if err != nil {
		c.refuse(f, err)
	} else if begun != 0 && moves(f.Type) {
		c.door.stats.ToLog.Observe(time.Duration(agora.Ticks() - begun))
	}
}

// answer acts on a control frame.
func (c *conn) answer(h head) error {
	b, err := c.have(int(h.size))
	if err != nil {
		return err
	}
	unmask(b, h.mask, 0)
	c.in.used(len(b))
	switch h.op {
	case opPing:
		c.control(opPong, b)
	case opPong:
		if s := c.session.Load(); s != nil && len(b) == 8 {
			s.Pong(binary.BigEndian.Uint64(b))
		}
	default:
		code := closeNoStatus
		if len(b) > 0 {
			if len(b) == 1 || !maySay(int(binary.BigEndian.Uint16(b))) || !utf8.Valid(b[2:]) {
				return broken("the close frame is not one")
			}
			code = int(binary.BigEndian.Uint16(b))
		}
		c.answerClose(code)
		return errClosed
	}
	return nil
}

// maySay tells whether a peer may close with a code (RFC 6455 section 7.4).
func maySay(code int) bool {
	switch {
	case code == 1004 || code == closeNoStatus || code == 1006:
		return false
	}
	return code >= closeNormal && code <= 1014 || code >= 3000 && code < 5000
}
