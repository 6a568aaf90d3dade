package ws

import (
	"github.com/agora-relay/agora/edge"
)

// traffic is what went over a connection. What came in is counted by the verb that runs, what goes
// out by the writer: when neither runs any more it is complete.
type traffic struct {
	framesIn, bytesIn   int64
	framesOut, bytesOut int64
}

// because notes why the connection ends, and the code of the close frame that was said first. The first
// word counts. mu is held.
func (c *conn) because(why edge.Cause, code int) {
	if c.why == 0 {
		c.why, c.code = why, int32(code)
	}
}

// ending is how the connection went. mu is held.
func (c *conn) ending() edge.Ending {
	c.because(edge.Lost, 0)
	e := edge.Ending{
		Cause: c.why, Code: int(c.code), FramesIn: c.traffic.framesIn, BytesIn: c.traffic.bytesIn,
		FramesOut: c.traffic.framesOut + c.out.queued, BytesOut: c.traffic.bytesOut,
	}
	if c.out.balked && c.out.sizes != nil {
		e.Largest = c.out.sizes.at
	}
	return e
}

// sampled is of how many frames one is timed.
const sampled = 16

// moves tells whether a frame's verb hands something to the log.
func moves(typ string) bool {
	switch typ {
	case "send", "send_chunk", "send_end", "reply", "reply_chunk", "reply_end", "cancel",
		"space.publish", "space.publish.delta", "space.publish.done", "space.event.cancel":
		return true
	}
	return false
}
