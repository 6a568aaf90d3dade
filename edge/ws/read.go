package ws

import (
	"encoding/binary"
	"io"
	"slices"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// requests holds frames to decode into: an idle connection keeps none.
var requests = sync.Pool{New: func() any { return new(wire.Frame) }}

// read serves messages until the socket is gone, and says why it is.
func (c *conn) read() error {
	for {
		kind, r, err := c.ws.NextReader()
		if err != nil {
			return err
		}
		if err := c.message(kind, r); err != nil {
			return err
		}
	}
}

// message reads one message whole and acts on it.
func (c *conn) message(kind int, r io.Reader) error {
	in := getBuffer()
	defer putBuffer(in)
	defer c.reading.Store(0)
	size, err := c.fill(in, r)
	if err != nil {
		return err
	}
	c.door.stats.FramesIn.Add(1)
	c.door.stats.BytesIn.Add(size)
	if !c.enter() {
		return nil
	}
	defer c.leave()
	switch {
	case kind != websocket.TextMessage:
		c.refuse(&wire.Frame{}, agora.Errorf(agora.InvalidRequest, "binary frames are not understood; send JSON as text"))
	case size > int64(len(in.b)):
		c.refuse(&wire.Frame{}, agora.Errorf(agora.MessageTooLarge, "frame of %d bytes is larger than %d", size, c.door.node.frame))
	default:
		c.act(in.b)
	}
	return nil
}

// fill reads the message into in. One that is too large is skipped: then in
// has less than the size that is returned.
func (c *conn) fill(in *buffer, r io.Reader) (size int64, err error) {
	b := in.b[:0]
	for len(b) <= c.door.node.frame {
		if cap(b)-len(b) < 512 {
			b = slices.Grow(b, 512)
			c.reading.Store(int64(cap(b)))
		}
		n, err := r.Read(b[len(b):min(cap(b), c.door.node.frame+1)])
		b = b[:len(b)+n]
		if err == io.EOF {
			in.b = b
			return int64(len(b)), nil
		}
		if err != nil {
			return 0, err
		}
	}
	in.b = b[:0]
	rest, err := io.Copy(io.Discard, r)
	return int64(len(b)) + rest, err
}

// act decodes a frame and does what it says. b is used again afterwards.
func (c *conn) act(b []byte) {
	f := requests.Get().(*wire.Frame)
	defer requests.Put(f)
	err := wire.DecodeRequest(b, f, c.door.cfg.Limits)
	if err == nil {
		err = c.handle(f)
	}
	if err != nil {
		c.refuse(f, err)
	}
}

// hooks makes gorilla's control frames pass through the queue.
func (c *conn) hooks() {
	c.ws.SetReadLimit(c.door.cfg.MaxMessage)
	c.ws.SetPingHandler(func(data string) error {
		c.control(opPong, []byte(data))
		return nil
	})
	c.ws.SetPongHandler(func(data string) error {
		if s := c.session.Load(); s != nil && len(data) == 8 {
			s.Pong(binary.BigEndian.Uint64([]byte(data)))
		}
		return nil
	})
	c.ws.SetCloseHandler(func(code int, _ string) error {
		c.answerClose(code)
		return nil
	})
}
