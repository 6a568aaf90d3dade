package ws

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/wire"
)

// requests holds frames to decode into: an idle connection keeps none.
var requests = sync.Pool{New: func() any { return new(wire.Frame) }}

// errClosed says that the peer has sent its close frame.
var errClosed = errors.New("the peer closed the connection")

// reader is the half of a connection that reads: one goroutine at a time.
type reader struct {
	*conn
	frames frame.Reader
	held   atomic.Int64 // bytes of the frame that is coming in, where it is a large one
	to     string       // addressee of the last frame
	stream string       // its stream
}

// heard is a connection's socket, each read of which is a sign of life.
type heard conn

// Read reads what has come.
func (h *heard) Read(b []byte) (int, error) {
	n, err := h.socket.Read(b)
	if n > 0 {
		(*conn)(h).alive()
	}
	return n, err
}

// await waits for the peer at little cost: this goroutine does nothing else but take the pongs of an idle one, so its
// stack stays small. Whatever else comes is for another one, with the stack that it takes.
func (r *reader) await() {
	for {
		b, err := r.frames.First((*heard)(r.conn))
		if len(b) == 0 && err != nil {
			r.door.work.Go(func() { r.finish(err) })
			return
		}
		if !r.idlePong(b) {
			n := len(b)
			r.door.work.Go(func() { r.listen(n) })
			return
		}
	}
}

// idlePong takes what has come where it is a whole pong which says no more than that the peer is there.
func (r *reader) idlePong(b []byte) bool {
	s := r.session.Load()
	if s == nil {
		return false
	}
	data, ok := frame.LonePong(b)
	return ok && s.IdlePong(data)
}

// listen serves what comes, of which n bytes are read. When the peer has little to say it ends, and
// has another goroutine await more.
func (r *reader) listen(n int) {
	r.frames.Open(n)
	var err error
	for err == nil && !r.frames.Quiet() {
		err = r.message()
	}
	r.frames.Shut()
	if err != nil {
		r.finish(err)
		return
	}
	r.rest()
	r.door.work.Go(r.await)
}

// message reads one message and acts on it, and on control frames before or inside it. One that
// has all come is not copied.
func (r *reader) message() error {
	h, err := r.frames.Head((*heard)(r.conn), false)
	if err != nil {
		return err
	}
	switch {
	case h.Op >= frame.Close:
		return r.answer(&h)
	case !h.Final || h.Size > frame.Window || h.Size > uint64(r.door.node.frame):
		return r.gather(h)
	}
	b, err := r.payload(&h)
	if err != nil {
		return err
	}
	r.serve(h.Op, b, int64(len(b)))
	return nil
}

// payload reads the payload of a frame, of at most [frame.Window] bytes. It is good until the next read.
func (r *reader) payload(h *frame.Head) ([]byte, error) {
	b, err := r.frames.Peek((*heard)(r.conn), int(h.Size))
	if err != nil {
		return nil, err
	}
	h.Unmask(b, 0)
	r.frames.Skip(len(b))
	return b, nil
}

// gather reads a message that comes in many pieces.
func (r *reader) gather(h frame.Head) (err error) {
	in := buffer.Get()
	defer buffer.Put(in)
	defer r.held.Store(0)
	op, size := h.Op, int64(0)
	for {
		if uint64(size)+h.Size > uint64(r.door.cfg.MaxMessage) {
			return frame.Breach{Code: frame.CloseTooBig, Text: "the message is too large"}
		}
		size += int64(h.Size)
		if err := r.fill(in, &h, size); err != nil {
			return err
		}
		if h.Final {
			break
		}
		if h, err = r.following(); err != nil {
			return err
		}
	}
	r.serve(op, in.B, size)
	return nil
}

// following reads the header of a message's next fragment, and acts on control frames before it.
func (r *reader) following() (frame.Head, error) {
	for {
		h, err := r.frames.Head((*heard)(r.conn), true)
		if err == nil && h.Op >= frame.Close {
			err = r.answer(&h)
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
func (r *reader) fill(in *buffer.Buffer, h *frame.Head, size int64) error {
	skip := size > int64(r.door.node.frame)
	if skip {
		in.B = in.B[:0]
	}
	for at := uint64(0); at < h.Size; {
		if skip {
			in.B = in.B[:0]
		}
		if len(in.B) == cap(in.B) {
			in.B = slices.Grow(in.B, int(min(h.Size-at, max(frame.Window, uint64(len(in.B))))))
		}
		r.held.Store(int64(cap(in.B)))
		r.MarkActive()
		room := in.B[len(in.B):cap(in.B)]
		n, err := r.frames.Read((*heard)(r.conn), room[:min(uint64(len(room)), h.Size-at)])
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

// serve acts on a message of a size; b is shorter where it was skipped, and is used again afterwards.
func (r *reader) serve(op frame.Op, b []byte, size int64) {
	var begun int64 // of a frame that is timed
	if r.door.stats.FramesIn.Add(1)%sampled == 1 {
		begun = agora.Ticks()
	}
	r.door.stats.BytesIn.Add(size)
	if !r.enter() {
		return
	}
	defer r.leave()
	r.traffic.framesIn++
	r.traffic.bytesIn += size
	switch {
	case op != frame.Text:
		r.refuse(&wire.Frame{}, agora.Errorf(agora.InvalidRequest, "binary frames are not understood; send JSON as text"))
	case size > int64(len(b)):
		r.refuse(&wire.Frame{}, agora.Errorf(agora.MessageTooLarge, "frame of %d bytes is larger than %d", size, r.door.node.frame))
	default:
		r.act(b, begun)
	}
}

// act decodes a frame and does what it says. b is used again afterwards. begun is when the frame was read, where that is timed.
func (r *reader) act(b []byte, begun int64) {
	f := requests.Get().(*wire.Frame)
	defer requests.Put(f)
	f.To, f.StreamID = r.to, r.stream // most often the next frame's as well: they are not made anew
	err := wire.DecodeRequest(b, f, r.door.cfg.Limits)
	if err == nil {
		r.to, r.stream = f.To, f.StreamID
		err = r.verbs.handle(f)
	}
	if err != nil {
		r.refuse(f, err)
	} else if begun != 0 && moves(f.Type) {
		r.door.stats.ToLog.Observe(time.Duration(agora.Ticks() - begun))
	}
}

// answer acts on a control frame.
func (r *reader) answer(h *frame.Head) error {
	b, err := r.payload(h)
	if err != nil {
		return err
	}
	switch h.Op {
	case frame.Ping:
		r.out.control(frame.Pong, b)
	case frame.Pong:
		if s := r.session.Load(); s != nil && len(b) == 8 {
			s.Pong(binary.BigEndian.Uint64(b))
		}
	default:
		code, err := frame.CloseCode(b)
		if err != nil {
			return err
		}
		r.answerClose(code)
		return errClosed
	}
	return nil
}
