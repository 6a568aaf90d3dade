package wire

import (
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

// Delivery is what an edge adds to a message on its way out.
type Delivery struct {
	Redelivered bool  // an earlier socket may have been given it
	DeadlineMS  int64 // time left of the request or stream; 0: none
}

// AppendMessage appends m as the frame that its receiver gets: message*,
// reply*, cancel, error, receipt, gap, space.event* or space.members. Bodies are
// spliced, so they must be JSON; it allocates nothing when dst has room.
//
// What stands in a body, besides payload, chunk and data:
//   - Roster: the raw members of space.members after its space,
//     `"members":[…],"joined":"x","left":null`; null for the members of a large space.
//   - Receipt: the raw members of receipt after its type, without seq, such
//     as `"to":"agent-2","n":7,"status":"delivered"`.
//   - Abort: the error's code. In a space the event is cancelled, whatever the code.
//   - Control with Abort and no stream is a request that ran out of time: the
//     code, and after one space the request_id, if it has one.
//
// A Gap's N is the first position that may be lost, and its Seq the last.
func AppendMessage(dst []byte, m *agora.Message, d Delivery) []byte {
	switch {
	case m.Kind == agora.Gap:
		return appendGap(dst, m)
	case m.Kind == agora.Receipt:
		dst = splice(append(dst, `{"type":"receipt"`...), m.Body)
	case m.Kind == agora.Roster:
		dst = appendString(append(dst, `{"type":"space.members","space":`...), m.To.Space)
		dst = splice(dst, m.Body)
	case m.Kind == agora.Event:
		dst = appendEvent(dst, m)
	case m.Part == agora.Abort:
		dst = appendAbort(dst, m)
	default:
		dst = appendRelayed(dst, m)
	}
	return appendDelivery(dst, m, d)
}

// Heads of the frames of relayed messages, by part, up to from.
var (
	messageHeads = [...]string{
		agora.Whole: `{"type":"message","from":`,
		agora.Start: `{"type":"message","from":`,
		agora.Chunk: `{"type":"message_chunk","from":`,
		agora.End:   `{"type":"message_end","from":`,
	}
	replyHeads = [...]string{
		agora.Whole: `{"type":"reply","from":`,
		agora.Start: `{"type":"reply","from":`,
		agora.Chunk: `{"type":"reply_chunk","from":`,
		agora.End:   `{"type":"reply_end","from":`,
	}
)

// appendRelayed appends message*, reply* or cancel but for its end.
func appendRelayed(dst []byte, m *agora.Message) []byte {
	switch {
	case m.Kind == agora.Control || m.Part > agora.End:
		dst = append(dst, `{"type":"cancel","from":`...)
	case m.Kind == agora.Reply:
		dst = append(dst, replyHeads[m.Part]...)
	default:
		dst = append(dst, messageHeads[m.Part]...)
	}
	dst = appendString(dst, string(m.From))
	if m.Part != agora.Whole {
		dst = appendString(append(dst, `,"stream_id":`...), m.Stream)
	}
	if m.Kind == agora.Control {
		return dst
	}
	if m.Part == agora.Start {
		dst = append(dst, `,"stream":true`...)
	}
	switch {
	case m.Body == nil:
	case m.Part == agora.Whole, m.Part == agora.Start:
		dst = append(append(dst, `,"payload":`...), m.Body...)
	case m.Part == agora.Chunk:
		dst = append(append(dst, `,"chunk":`...), m.Body...)
	}
	return dst
}

// appendEvent appends space.event* but for its end.
func appendEvent(dst []byte, m *agora.Message) []byte {
	switch m.Part {
	case agora.Whole:
		dst = append(dst, `{"type":"space.event","space":`...)
	case agora.Start, agora.Chunk:
		dst = append(dst, `{"type":"space.event.delta","space":`...)
	case agora.End:
		dst = append(dst, `{"type":"space.event.done","space":`...)
	default:
		dst = append(dst, `{"type":"space.event.cancel","space":`...)
	}
	dst = appendString(dst, m.To.Space)
	if m.Part != agora.Whole {
		dst = appendString(append(dst, `,"event_id":`...), m.Stream)
	}
	if m.Part <= agora.Chunk {
		dst = append(append(dst, `,"data":`...), m.Body...)
	}
	return dst
}

// appendAbort appends the error that tells that the cluster gave up a stream or a request.
func appendAbort(dst []byte, m *agora.Message) []byte {
	code, request := m.Body, []byte(nil)
	for i, c := range m.Body {
		if c == ' ' {
			code, request = m.Body[:i], m.Body[i+1:]
			break
		}
	}
	dst = append(append(dst, `{"type":"error","code":"`...), code...)
	dst = append(dst, `","message":"`...)
	dst = append(dst, whyAborted(code, m.Stream != "")...)
	dst = append(dst, '"')
	if len(request) > 0 {
		dst = appendString(append(dst, `,"request_id":`...), string(request))
	}
	dst = appendString(append(dst, `,"from":`...), string(m.From))
	if m.Stream != "" {
		dst = appendString(append(dst, `,"stream_id":`...), m.Stream)
	}
	return dst
}

func whyAborted(code []byte, stream bool) string {
	switch {
	case string(code) == string(agora.Timeout) && stream:
		return "the stream's deadline has passed"
	case string(code) == string(agora.Timeout):
		return "the request's deadline has passed"
	}
	return "the stream was given up before its end"
}

func appendGap(dst []byte, m *agora.Message) []byte {
	dst = strconv.AppendUint(append(dst, `{"type":"gap","from_seq":`...), m.N, 10)
	dst = strconv.AppendUint(append(dst, `,"to_seq":`...), m.Seq, 10)
	if m.To.IsSpace() {
		dst = appendString(append(dst, `,"space":`...), m.To.Space)
	}
	return append(dst, '}')
}

// splice appends a body that is a run of members.
func splice(dst, members []byte) []byte {
	if len(members) == 0 {
		return dst
	}
	return append(append(dst, ','), members...)
}

// appendDelivery appends the extensions of every delivered frame, and its end.
func appendDelivery(dst []byte, m *agora.Message, d Delivery) []byte {
	if m.Seq > 0 {
		dst = strconv.AppendUint(append(dst, `,"seq":`...), m.Seq, 10)
	}
	told := m.Kind == agora.Receipt || m.Kind == agora.Roster // numbers of theirs are not their sender's
	if m.N > 0 && !told {
		dst = strconv.AppendUint(append(dst, `,"n":`...), m.N, 10)
		if m.Session != "" {
			dst = appendString(append(dst, `,"session":`...), m.Session)
		}
	}
	if m.Indexed && !told {
		dst = strconv.AppendUint(append(dst, `,"index":`...), uint64(m.Index), 10)
	}
	if d.Redelivered || m.Again {
		dst = append(dst, `,"redelivered":true`...)
	}
	if d.DeadlineMS > 0 && m.Part <= agora.Start && m.Kind <= agora.Reply {
		dst = strconv.AppendInt(append(dst, `,"deadline_ms":`...), d.DeadlineMS, 10)
	}
	if m.Meta.Trace != "" && m.Part <= agora.Start {
		dst = appendString(append(dst, `,"traceparent":`...), m.Meta.Trace)
	}
	return append(dst, '}')
}

// Relay returns a send*, reply* or cancel frame from a client as the message
// that it asks Agora to move. To.Tenant, From and Meta.Deadline (from
// DeadlineMS) are the caller's to set. A one-shot is Whole and carries no
// stream, whatever the client wrote beside it. A cancel is of Kind Control, as
// the receiver of a stream sends it; the caller, who knows which streams are open, makes
// it a Request or Reply where it comes from the stream's own sender. The body
// is a slice of the frame.
func (f *Frame) Relay() agora.Message {
	m := agora.Message{
		ID: f.ID, N: f.N, To: agora.Address{Agent: agora.AgentID(f.To)},
		Meta: agora.Meta{Receipts: f.Receipts},
	}
	if strings.HasPrefix(f.Type, "reply") {
		m.Kind = agora.Reply
	}
	switch f.Type {
	case "send", "reply":
		m.Body, m.Meta.Trace = f.Payload, f.Traceparent
		if !f.Stream {
			return m
		}
		m.Part = agora.Start
	case "send_chunk", "reply_chunk":
		m.Part, m.Body = agora.Chunk, f.Chunk
	case "send_end", "reply_end":
		m.Part = agora.End
	case "cancel":
		m.Kind, m.Part = agora.Control, agora.Cancel
	}
	m.Stream, m.Index, m.Indexed = f.StreamID, f.Index, f.HasIndex
	return m
}
