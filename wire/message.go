package wire

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// Delivery is what an edge adds to a message on its way out.
type Delivery struct {
	Redelivered bool  // an earlier socket may have been given it
	DeadlineMS  int64 // time left of the request or stream; 0: none
}

// AppendMessage appends m as the frame that its receiver gets: message*,
// reply*, cancel, error, receipt, gap, space.event* or space.members. Payload and data
// are written by [AppendBody], a chunk by [AppendChunk]; what they wrote as base64 has its media type beside it. It
// allocates nothing when dst has room, but for receipts and rosters.
//
// A Receipt and a Roster that can't be read are frames that name nobody: their reader is to drop them before. An event that
// the cluster gave up is cancelled, whatever the code. A Control with Abort and no stream is a request that ran out of
// time. A Gap's N is the first position that may be lost, and its Seq the last.
func AppendMessage(dst []byte, m *agora.Message, d Delivery) []byte {
	switch {
	case m.Kind == agora.Gap:
		return appendGap(dst, m)
	case m.Kind == agora.Receipt:
		dst = appendReceipt(dst, m)
	case m.Kind == agora.Roster:
		dst = appendRoster(dst, m)
	case m.Kind == agora.Event:
		dst = appendEvent(dst, m)
	case m.Part == agora.Abort:
		dst = appendAbort(dst, m)
	case m.Kind == agora.Control && m.AbortBody().Code == agora.MessageTooLarge:
		dst = rawjson.AppendString(append(appendUndelivered(dst, "", m.From), `,"stream_id":`...), m.Stream)
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
	dst = rawjson.AppendString(dst, string(m.From))
	if m.Part != agora.Whole {
		dst = rawjson.AppendString(append(dst, `,"stream_id":`...), m.Stream)
	}
	if m.Kind == agora.Control {
		return dst
	}
	if m.Part == agora.Start {
		dst = append(dst, `,"stream":true`...)
	}
	switch {
	case m.Part == agora.Chunk:
		dst = AppendChunk(append(dst, `,"chunk":`...), m)
	case m.Body == nil || m.Part > agora.End:
		return dst
	default:
		dst = AppendBody(append(dst, `,"payload":`...), m)
	}
	if m.Media == "" || m.Media == agora.MediaText {
		return dst
	}
	media, item := agora.SplitItem(m.Media)
	dst = rawjson.AppendMember(dst, "media", media)
	if item > 0 && m.Part == agora.Chunk {
		dst = strconv.AppendUint(append(dst, `,"item":`...), uint64(item), 10)
	}
	return dst
}

func appendReceipt(dst []byte, m *agora.Message) []byte {
	r, _ := m.ReceiptBody() // an empty one where it can't be read
	if r.Tier == agora.Undelivered {
		dst = appendUndelivered(dst, r.ID, m.From)
		if r.N > 0 {
			dst = strconv.AppendUint(append(dst, `,"n":`...), r.N, 10)
		}
		return dst
	}
	dst = append(dst, `{"type":"receipt"`...)
	switch {
	case r.ID != "":
		dst = rawjson.AppendString(append(dst, `,"request_id":`...), r.ID)
	case r.Stream != "":
		dst = rawjson.AppendString(append(dst, `,"stream_id":`...), r.Stream)
		dst = strconv.AppendUint(append(dst, `,"index":`...), uint64(r.Index), 10)
	default:
		dst = rawjson.AppendString(append(dst, `,"to":`...), string(m.From))
		dst = strconv.AppendUint(append(dst, `,"n":`...), r.N, 10)
		return rawjson.AppendString(append(dst, `,"status":`...), TierName(r.Tier))
	}
	dst = rawjson.AppendString(append(dst, `,"status":`...), TierName(r.Tier))
	return rawjson.AppendString(append(dst, `,"to":`...), string(m.From))
}

// appendUndelivered appends the error that tells that its receiver, to, is not given what was sent; id is that of the frame, empty where it has none.
func appendUndelivered(dst []byte, id string, to agora.AgentID) []byte {
	dst = rawjson.AppendString(append(dst, `{"type":"error","code":`...), string(agora.MessageTooLarge))
	dst = rawjson.AppendString(append(dst, `,"message":`...), "the receiver takes no frame as large as this one would come in")
	if id != "" {
		dst = rawjson.AppendString(append(dst, `,"request_id":`...), id)
	}
	return rawjson.AppendString(append(dst, `,"to":`...), string(to))
}

func appendRoster(dst []byte, m *agora.Message) []byte {
	r, _ := m.RosterBody() // an empty one where it can't be read
	dst = rawjson.AppendString(append(dst, `{"type":"space.members","space":`...), m.To.Space)
	dst = append(dst, `,"members":`...)
	if r.Members == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendList(dst, r.Members, func(id agora.AgentID, dst []byte) []byte { return rawjson.AppendString(dst, string(id)) })
	}
	dst = appendID(append(dst, `,"joined":`...), r.Joined)
	return appendID(append(dst, `,"left":`...), r.Left)
}

// appendID appends an id, null where it is empty.
func appendID(dst []byte, id agora.AgentID) []byte {
	if id == "" {
		return append(dst, "null"...)
	}
	return rawjson.AppendString(dst, string(id))
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
	dst = rawjson.AppendString(dst, m.To.Space)
	if m.Part != agora.Whole {
		dst = rawjson.AppendString(append(dst, `,"event_id":`...), m.Stream)
	}
	if m.Part <= agora.Chunk {
		dst = AppendBody(append(dst, `,"data":`...), m)
	}
	return dst
}

// appendAbort appends the error that tells that the cluster gave up a stream or a request.
func appendAbort(dst []byte, m *agora.Message) []byte {
	a := m.AbortBody()
	dst = rawjson.AppendString(append(dst, `{"type":"error","code":`...), string(a.Code))
	dst = rawjson.AppendString(append(dst, `,"message":`...), AbortReason(a.Code, m.Stream != ""))
	if a.Request != "" {
		dst = rawjson.AppendString(append(dst, `,"request_id":`...), a.Request)
	}
	dst = rawjson.AppendString(append(dst, `,"from":`...), string(m.From))
	if m.Stream != "" {
		dst = rawjson.AppendString(append(dst, `,"stream_id":`...), m.Stream)
	}
	return dst
}

// AbortReason returns the sentence that tells why the cluster gave up a stream, or else a request: the same in every dialect.
func AbortReason(code agora.Code, stream bool) string {
	switch {
	case code == agora.Timeout && stream:
		return "the stream's deadline has passed"
	case code == agora.Timeout:
		return "the request's deadline has passed"
	case !stream:
		return "the request was given up before its answer"
	}
	return "the stream was given up before its end"
}

func appendGap(dst []byte, m *agora.Message) []byte {
	dst = strconv.AppendUint(append(dst, `{"type":"gap","from_seq":`...), m.N, 10)
	dst = strconv.AppendUint(append(dst, `,"to_seq":`...), m.Seq, 10)
	if m.To.IsSpace() {
		dst = rawjson.AppendString(append(dst, `,"space":`...), m.To.Space)
	}
	return append(dst, '}')
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
			dst = rawjson.AppendString(append(dst, `,"session":`...), m.Session)
		}
	}
	if m.Indexed && !told {
		dst = strconv.AppendUint(append(dst, `,"index":`...), uint64(m.Index), 10)
	}
	if d.Redelivered || m.Again {
		dst = append(dst, `,"redelivered":true`...)
	}
	if m.Part > agora.Start {
		return append(dst, '}')
	}
	if d.DeadlineMS > 0 && m.Kind <= agora.Reply {
		dst = strconv.AppendInt(append(dst, `,"deadline_ms":`...), d.DeadlineMS, 10)
	}
	if m.Meta.Trace != "" {
		dst = rawjson.AppendString(append(dst, `,"traceparent":`...), m.Meta.Trace)
	}
	if name := requestOf(m); name != "" {
		dst = rawjson.AppendString(append(dst, `,"request_id":`...), name)
	}
	return append(dst, '}')
}

// requestOf returns the name of the request that a message is or answers, where that stands beside the payload: it
// was said there, or it belongs to a call or another dialect, whose payloads need not have it.
func requestOf(m *agora.Message) string {
	switch {
	case m.Kind > agora.Reply:
		return ""
	case m.Kind == agora.Reply:
		return cmp.Or(m.Meta.Request, foreign(m, m.Meta.Parent))
	case m.Meta.Request == "" && m.Meta.Call == "" && m.Meta.Dialect == "":
		return ""
	}
	id, _, _ := strings.Cut(m.ID, "\x00") // behind that stands what the cluster adds to a sender's id
	return cmp.Or(m.Meta.Request, id)
}

// foreign returns name where a message is of another dialect, else "".
func foreign(m *agora.Message, name string) string {
	if m.Meta.Dialect == "" {
		return ""
	}
	return name
}

// Relay returns a send*, reply* or cancel frame from a client as the message
// that it asks Agora to move. To.Tenant, From and Meta.Deadline (from
// DeadlineMS) are the caller's to set. A one-shot is Whole and is no part of a stream,
// whatever the client wrote beside it: the Stream of a whole Reply names what it answers, and
// is not delivered. Meta.Request is what the frame has at its top level. A cancel is of Kind Control, as
// the receiver of a stream sends it; the caller, who knows which streams are open, makes
// it a Request or Reply where it comes from the stream's own sender. The cancel of a request is an Abort of Kind Control. The body is a slice
// of the frame, and JSON: a chunk may become text by [AppendText].
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
		m.Body, m.Meta.Trace, m.Meta.Request = f.Payload, f.Traceparent, f.RequestID
		if !f.Stream {
			if m.Kind == agora.Reply {
				m.Stream = f.StreamID
			}
			return m
		}
		m.Part = agora.Start
	case "send_chunk", "reply_chunk":
		m.Part, m.Body = agora.Chunk, f.Chunk
	case "send_end", "reply_end":
		m.Part, m.Body = agora.End, f.Payload
	case "cancel":
		if f.RequestID != "" {
			a := agora.AbortBody{Code: agora.StreamAborted, Request: f.RequestID}.Message()
			m.Kind, m.Part, m.Body = agora.Control, a.Part, a.Body
			return m
		}
		m.Kind, m.Part = agora.Control, agora.Cancel
	}
	m.Stream, m.Index, m.Indexed = f.StreamID, f.Index, f.HasIndex
	return m
}
