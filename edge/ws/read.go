package ws

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/wire"
)

// requests holds frames to decode into: an idle connection keeps none.
var requests = sync.Pool{New: func() any { return new(wire.Frame) }}

// errClosed says that the peer has sent its close frame.
var errClosed = errors.New("the peer closed the connection")

// Read reads what has come over the socket. It is a sign of life.
func (c *conn) Read(b []byte) (int, error) {
	if c.in.Held() > 0 {
		c.MarkActive()
	}
	n, err := c.socket.Read(b)
	if n > 0 {
		c.alive()
	}
	return n, err
}

// await waits for the peer at little cost: this goroutine does nothing else but take the pongs of an idle one, so its
// stack stays small. Other frames are for another one, whose stack may grow.
func (c *conn) await() {
	for {
		b, err := c.in.First(c)
		if len(b) == 0 && err != nil {
			c.door.work.Go(func() { c.finish(err) })
			return
		}
		if !c.idlePong(b) {
			n := len(b)
			c.door.work.Go(func() { c.listen(n) })
			return
		}
	}
}

// idlePong takes what has come where it is a whole pong which says no more than that the peer is there.
func (c *conn) idlePong(b []byte) bool {
	s := c.session()
	if s == nil {
		return false
	}
	data, ok := frame.LonePong(b)
	return ok && s.IdlePong(data)
}

// listen serves what comes, of which n bytes are read. When the peer has little to say it ends, and
// has another goroutine await more.
func (c *conn) listen(n int) {
	c.in.Open(n)
	var err error
	for err == nil && !c.in.Quiet() {
		if _, err = c.in.Peek(c, 2); err == nil { // which waits on a small stack
			err = c.next()
		}
	}
	c.in.Shut()
	if err != nil {
		c.finish(err)
		return
	}
	c.out.Rest()
	c.door.work.Go(c.await)
}

// next reads what comes next and acts on it.
func (c *conn) next() error {
	var m frame.Message
	if err := c.in.Next(c, &m, int64(c.door.node.frame), c.door.cfg.MaxMessage); err != nil {
		return err
	}
	if m.Op >= frame.Close {
		return c.answer(m)
	}
	defer c.in.Release()
	var begun int64 // of a frame that is timed
	if c.door.stats.FramesIn.Add(1)%sampled == 1 {
		begun = agora.Ticks()
	}
	c.door.stats.BytesIn.Add(m.Size)
	if !c.out.Enter() {
		return nil
	}
	c.traffic.framesIn++
	c.traffic.bytesIn += m.Size
	switch {
	case m.Op != frame.Text:
		c.refuse(&wire.Frame{}, agora.Errorf(agora.InvalidRequest, "binary frames are not understood; send JSON as text"))
	case m.Size > int64(len(m.Body)):
		c.refuse(&wire.Frame{}, agora.Errorf(agora.MessageTooLarge, "frame of %d bytes is larger than %d", m.Size, c.door.node.frame))
	default:
		c.act(m.Body, begun)
	}
	if c.out.Leave() {
		c.alive() // it could not be heard meanwhile
	}
	return nil
}

// act decodes a frame and does what it says. b is used again afterwards. begun is when the frame was read, where that
// is timed.
func (c *conn) act(b []byte, begun int64) {
	f := requests.Get().(*wire.Frame)
	defer requests.Put(f)
	f.To, f.StreamID = c.to, c.streamID // most often the next frame's as well: they are not made again
	err := wire.DecodeRequest(b, f, c.door.cfg.Limits)
	if err == nil {
		c.to, c.streamID = f.To, f.StreamID
		err = handle(c, f)
	}
	if err != nil {
		c.refuse(f, err)
	} else if begun != 0 && verbs[f.Type].moves {
		c.door.stats.ToLog.Observe(time.Duration(agora.Ticks() - begun))
	}
}

// sampled is of how many frames one is timed.
const sampled = 16

// answer acts on a control frame.
func (c *conn) answer(m frame.Message) error {
	switch m.Op {
	case frame.Ping:
		c.control(frame.Pong, m.Body)
	case frame.Pong:
		if s := c.session(); s != nil && len(m.Body) == 8 {
			s.Pong(binary.BigEndian.Uint64(m.Body))
		}
	default:
		code, err := frame.CloseCode(m.Body)
		if err != nil {
			return err
		}
		c.answerClose(code)
		return errClosed
	}
	return nil
}
