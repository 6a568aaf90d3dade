package client

import (
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// frame is something to send. Those to an agent or into a space are numbered
// and kept until their receipt; what a frame says is encoded when it is
// written, because number and time left may have changed until then.
type frame struct {
	typ      string
	to       laneKey // of a numbered frame; else zero
	id       string
	stream   string // or the id of an event
	more     bool   // stream:true
	body     json.RawMessage
	deadline time.Time
	trace    string      // traceparent of a frame that begins something
	request  string      // the request that a reply answers, where its payload does not say it
	other    *wire.Frame // everything else: no number; kept until its id is answered
	once     bool        // wants no answer: done with once it is written
	st       *outStream  // whose part it is
	tiers    agora.Receipts
	watch    *watch // of the tiers that were asked for; nil for none

	// The outbox's lock guards these.
	n        uint64
	lane     *lane     // of a numbered frame
	sent     bool      // written to a socket, some time, and not known to be refused since
	written  bool      // to the present connection, and not to go out again there
	gone     bool      // nobody waits for it any more
	since    time.Time // when it was first held up because of a refusal for the moment
	finished bool
	err      error         // why it failed, when finished
	done     chan struct{} // closed when finished; nil when nobody waits
}

// laneKey is whom numbered frames go to: an agent or a space.
type laneKey struct{ agent, space string }

// size is what the frame counts against Config.MaxPending.
func (f *frame) size() int { return len(f.body) + 256 }

// await makes the frame tell when it is finished. It is called before the frame is added.
func (f *frame) await() { f.done = make(chan struct{}) }

// append appends the frame as it goes out now; w is scratch space.
func (f *frame) append(dst []byte, w *wire.Frame) []byte {
	if f.other != nil {
		return f.other.Append(dst)
	}
	*w = wire.Frame{Type: f.typ, ID: f.id, Stream: f.more, N: f.n, To: f.to.agent, Space: f.to.space}
	switch {
	case f.to.space != "":
		w.EventID, w.Data = f.stream, f.body
	case f.typ == "send_chunk" || f.typ == "reply_chunk":
		w.StreamID, w.Chunk = f.stream, f.body
	default:
		w.StreamID, w.Payload = f.stream, f.body
	}
	if !f.deadline.IsZero() {
		w.DeadlineMS = max(1, time.Until(f.deadline).Milliseconds())
	}
	w.Traceparent, w.RequestID, w.Receipts = f.trace, f.request, f.tiers
	return w.Append(dst)
}
