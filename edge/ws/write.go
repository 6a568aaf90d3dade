package ws

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/deliver"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/spaces"
	"github.com/agora-relay/agora/wire"
)

// Write implements deliver.Line.
func (c *conn) Write(b []byte, w *deliver.Writer) (taken int, err error) {
	return deliver.WriteSocket(c.socket, b, w, c.door.node.timeout, c)
}

// Wrote counts a write of n bytes.
func (c *conn) Wrote(n int, eased bool) {
	c.door.stats.Writes.Add(1)
	c.door.stats.BytesOut.Add(int64(n))
	c.traffic.bytesOut += int64(n)
	if eased {
		c.alive()
	}
}

// Encode appends deliveries as WebSocket frames: it implements deliver.Line.
func (c *conn) Encode(dst []byte, ds []edge.Delivery, _ *deliver.Writer) []byte {
	for i := range ds {
		d := &ds[i]
		if m := d.Message; m != nil && m.Meta.Dialect != "" {
			learns(c, m)
		}
		at := len(dst)
		if e := d.Event; e == nil {
			dst = appendMessage(dst, d.Message, wire.Delivery{Redelivered: d.Redelivered, DeadlineMS: d.DeadlineMS})
		} else if d.Redelivered || e.Redelivered {
			dst = appendMessage(dst, &e.Message, wire.Delivery{Redelivered: true, DeadlineMS: d.DeadlineMS})
		} else {
			dst = append(dst, e.Encoded(encoding{}, encodeEvent)...)
		}
		if n := len(dst) - at; n > wire.MinMaxFrame { // smaller ones every client takes
			c.noteLarge(n, d)
		}
	}
	c.door.stats.FramesOut.Add(int64(len(ds)))
	c.traffic.framesOut += int64(len(ds))
	return dst
}

// encoding is the key of this door's encoding of an event that many share.
type encoding struct{}

func encodeEvent(e *spaces.Event) []byte {
	return appendMessage(make([]byte, 0, len(e.Body)+192), &e.Message, wire.Delivery{})
}

func appendMessage(dst []byte, m *agora.Message, d wire.Delivery) []byte {
	at := len(dst)
	return frame.End(wire.AppendMessage(frame.Begin(dst), m, d), at, frame.Text)
}

// Notify queues what the session tells its agent besides deliveries.
func (c *conn) Notify(n edge.Notice) {
	switch n.Kind {
	case edge.NoticePing:
		c.ping(n)
	case edge.NoticeFault:
		f := (&wire.Frame{ID: n.RequestID, N: n.N}).Refuse(n.Err)
		about(&f, n)
		c.fault(&f, agora.AsError(n.Err))
	case edge.NoticeUnanswered: // which is no fault of the agent's
		f := (&wire.Frame{ID: n.RequestID, To: string(n.To.Agent)}).Refuse(n.Err)
		c.queue(&f)
	default:
		f := noticeFrame(n)
		c.queue(&f)
	}
}

func noticeFrame(n edge.Notice) wire.Frame {
	switch n.Kind {
	case edge.NoticeReceipt:
		f := wire.Frame{Type: "receipt", RequestID: n.RequestID, N: n.N, Status: wire.TierName(n.Tier), Seq: n.Seq}
		if n.RequestID == "" { // a request's own id says which one it was
			about(&f, n)
			f.Index, f.HasIndex = n.Index, n.Stream != ""
		}
		return f
	case edge.NoticePublished:
		return wire.Frame{Type: "space.published", ID: n.RequestID, Space: n.To.Space, EventID: n.Stream}
	case edge.NoticeReconnect:
		return wire.Frame{Type: "agent.reconnect", AfterMS: n.After.Milliseconds()}
	default:
		return heartbeatFrame(n.At)
	}
}

func heartbeatFrame(at time.Time) wire.Frame {
	return wire.Frame{Type: "agent.heartbeat", Timestamp: json.RawMessage(strconv.AppendInt(nil, at.Unix(), 10))}
}

// about says which addressee and stream the frame speaks of.
func about(f *wire.Frame, n edge.Notice) {
	f.To, f.Space = string(n.To.Agent), n.To.Space
	if n.To.IsSpace() {
		f.EventID = n.Stream
	} else {
		f.StreamID = n.Stream
	}
}

// ping asks the peer for a sign of life, and gives one where a heartbeat is due with it.
func (c *conn) ping(n edge.Notice) {
	out := buffer.Get()
	defer buffer.Put(out)
	var data [8]byte
	binary.BigEndian.PutUint64(data[:], n.Data)
	out.B = frame.AppendControl(out.B, frame.Ping, data[:])
	beats := !n.At.IsZero()
	if beats {
		at, f := len(out.B), heartbeatFrame(n.At)
		out.B = frame.End(f.Append(frame.Begin(out.B)), at, frame.Text)
	}
	if c.out.AppendQuiet(out.B) && beats {
		c.told.Add(1)
		c.door.stats.FramesOut.Add(1)
	}
}

// control queues a control frame.
func (c *conn) control(op frame.Op, payload []byte) {
	if b, ok := c.out.Begin(); ok {
		c.out.Commit(frame.AppendControl(b, op, payload))
	}
}

// queue appends a frame behind what is queued.
func (c *conn) queue(f *wire.Frame) {
	if b, ok := c.out.Begin(); ok {
		c.out.Commit(c.appendFrame(b, f))
	}
}

// queueInTurn queues a frame once the peer has taken enough of what is queued. It must not be called by a verb.
func (c *conn) queueInTurn(f *wire.Frame) {
	c.out.AwaitRoom()
	c.queue(f)
}

// appendFrame appends a frame that is no delivery; an error in its place where the peer does not take one as large.
func (c *conn) appendFrame(dst []byte, f *wire.Frame) []byte {
	at := len(dst)
	b := frame.Begin(dst)
	begin := len(b)
	if b = f.Append(b); len(b)-begin > c.frameSize() {
		instead := f.Refuse(errTooLarge)
		b = instead.Append(b[:begin])
	}
	c.told.Add(1)
	c.door.stats.FramesOut.Add(1)
	return frame.End(b, at, frame.Text)
}

// errTooLarge is told in the place of an answer that the peer does not take.
var errTooLarge = agora.Errorf(agora.MessageTooLarge, "the answer is larger than a frame that this connection takes")

// sizes are what a connection knows of the sizes of frames.
type sizes struct {
	most    int        // bytes of a frame that the peer takes, as it has said; 0 where it has not
	largest int        // bytes of the largest delivery so far: the writing goroutine's, as the next
	at      edge.Place // where that stands
}

// limitFrames sets how large a frame may be that the peer is sent, as it has said; 0 where it has not. It returns what holds: limits.frame at most.
// It is called before anything is delivered.
func (c *conn) limitFrames(most int) int {
	if most > 0 {
		c.sizes.Store(&sizes{most: min(most, c.door.node.frame)})
	}
	return c.frameSize()
}

// frameSize returns how large a frame may be that the peer is sent.
func (c *conn) frameSize() int {
	z := c.sizes.Load()
	if z == nil {
		return c.door.node.frame
	}
	return cmp.Or(z.most, c.door.node.frame)
}

// noteLarge notes a large delivery, where it is the largest.
func (c *conn) noteLarge(size int, d *edge.Delivery) {
	z := c.sizes.Load()
	if z == nil {
		z = new(sizes)
		c.sizes.Store(z)
	}
	if size > z.largest {
		z.largest, z.at = size, d.Place()
	}
}
