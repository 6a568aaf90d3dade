package ws

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/spaces"
	"github.com/agora-relay/agora/wire"
)

// Notify queues what the session tells its agent besides deliveries.
func (c *conn) Notify(n edge.Notice) {
	switch n.Kind {
	case edge.NoticePing:
		c.out.ping(n)
	case edge.NoticeFault:
		f := (&wire.Frame{ID: n.RequestID, N: n.N}).Refuse(n.Err)
		about(&f, n)
		c.fault(&f, agora.AsError(n.Err))
	case edge.NoticeUnanswered: // which is no fault of the agent's
		f := (&wire.Frame{ID: n.RequestID, To: string(n.To.Agent)}).Refuse(n.Err)
		c.out.queue(&f)
	default:
		f := noticeFrame(n)
		c.out.queue(&f)
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
		return heartbeat(n.At)
	}
}

func heartbeat(at time.Time) wire.Frame {
	return wire.Frame{Type: "agent.heartbeat", Timestamp: seconds(at)}
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

// refuse answers a request with an error; an empty frame stands for one that could not be read.
func (c *conn) refuse(request *wire.Frame, err error) {
	f := request.Refuse(err)
	c.fault(&f, agora.AsError(err))
}

func seconds(t time.Time) json.RawMessage { return strconv.AppendInt(nil, t.Unix(), 10) }

// encoding is the key of this door's encoding of an event that many share.
type encoding struct{}

// appendDelivery appends a delivery as a WebSocket frame.
func appendDelivery(dst []byte, d *edge.Delivery) []byte {
	if e := d.Event; e != nil {
		if d.Redelivered || e.Redelivered {
			return appendMessage(dst, &e.Message, wire.Delivery{Redelivered: true, DeadlineMS: d.DeadlineMS})
		}
		return append(dst, e.Encoded(encoding{}, encodeEvent)...)
	}
	return appendMessage(dst, d.Message, wire.Delivery{Redelivered: d.Redelivered, DeadlineMS: d.DeadlineMS})
}

func encodeEvent(e *spaces.Event) []byte {
	return appendMessage(make([]byte, 0, len(e.Body)+192), &e.Message, wire.Delivery{})
}

func appendMessage(dst []byte, m *agora.Message, d wire.Delivery) []byte {
	at := len(dst)
	return frame.End(wire.AppendMessage(frame.Begin(dst), m, d), at, frame.Text)
}
