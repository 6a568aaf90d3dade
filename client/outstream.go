package client

import "github.com/agora-relay/agora/wire"

// outStream is a stream that goes out, as the outbox knows it, whose lock guards what changes.
type outStream struct {
	key    outKey
	start  *frame
	failed error  // why it failed
	ends   func() // called, under the lock, when it fails; nil for nothing
}

// outKey names a stream that goes out.
type outKey struct {
	to laneKey
	id string
}

// begun reports whether the start was written. It is called with the lock held.
func (s *outStream) begun() bool { return s.start.sent }

// renamed reports whether the edge has given the event its id, so that parts of
// it may have been written. It is called with the lock held.
func (s *outStream) renamed() bool { return s.key.to.space != "" && s.key.id != s.start.id }

// partTypes are the types of the frames of a stream.
var partTypes = map[string][3]string{ // to an agent, as a reply, into a space
	"chunk": {"send_chunk", "reply_chunk", "space.publish.delta"},
	"end":   {"send_end", "reply_end", "space.publish.done"},
}

// part makes a part of the stream.
func (s *outStream) part(what string, body []byte) *frame {
	i := 0
	switch {
	case s.key.to.space != "":
		i = 2
	case s.start.typ == "reply":
		i = 1
	}
	return &frame{typ: partTypes[what][i], to: s.key.to, stream: s.key.id, body: body, st: s}
}

// cancellation makes the frame that tells those who get the stream that it is given up.
func (s *outStream) cancellation() *frame {
	if s.key.to.space == "" {
		return &frame{typ: "cancel", to: s.key.to, stream: s.key.id, st: s}
	}
	id := newID("c")
	return &frame{id: id, other: &wire.Frame{Type: "space.event.cancel", ID: id, Space: s.key.to.space, EventID: s.key.id}}
}
