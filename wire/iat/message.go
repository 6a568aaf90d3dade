package iat

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

// Delivery is what an edge adds to a message on its way out.
type Delivery struct {
	ID          string    // msg_id of an envelope that the sender of the message has not named; agora- and its position if empty
	Parent      string    // its parent_id; empty for none, or Meta.Parent
	Redelivered bool      // the receiver may have been given it before
	DeadlineMS  int64     // time left of the request or stream; 0: none
	Time        time.Time // when the message was stored; zero leaves timestamp out
	Trace       string    // its trace_id, where the message belongs to no W3C trace
}

// hops is what is left of a message's budget that was sent without one: as if it had been sent with one more.
const hops = "2"

// Shows reports whether there is an envelope that says a message: for the start of a reply that has no body there is none,
// nor for what comes out of spaces, nor for a receipt that can't be read.
func Shows(m *agora.Message) bool {
	switch m.Kind {
	case agora.Event, agora.Roster:
		return false
	case agora.Receipt:
		_, err := m.ReceiptBody()
		return err == nil
	case agora.Reply:
		return m.Part != agora.Start || m.Body != nil
	}
	return true
}

// AppendEnvelope appends the envelope in which an agent gets m, a message of which [Shows] is true (IAT §2.2). What came as an
// envelope keeps its header and metadata as [Envelope.AppendHead] has stored them, and its payload. What came otherwise is
// given those: parts of a stream become chunks, and what no part of an envelope stands for becomes an action, as PROTOCOL.md
// lists them. It allocates nothing for those when dst has room, but for receipts and what was aborted.
//
// A body without a media type is spliced, so it must be JSON.
func AppendEnvelope(dst []byte, m *agora.Message, d Delivery) []byte {
	if m.Meta.Dialect == Dialect && m.Part != agora.Abort {
		if header, metadata, ok := readHead(m.Meta.Head); ok {
			return appendSpliced(dst, m, header, metadata, d)
		}
	}
	switch {
	case m.Kind == agora.Gap:
		return appendGap(dst, m, d)
	case m.Kind == agora.Receipt:
		return appendReceipt(dst, m, d)
	case m.Part == agora.Abort:
		return appendAbort(dst, m, d)
	}
	dst = appendHeader(dst, m, d, spellingOf(m))
	dst = appendPayload(dst, m)
	return append(dst, '}')
}

// appendSpliced appends an envelope whose header and metadata are known.
func appendSpliced(dst []byte, m *agora.Message, header, metadata []byte, d Delivery) []byte {
	dst = append(append(dst, `{"header":`...), header...)
	if again := d.Redelivered || m.Again; len(metadata) > 0 || again || d.DeadlineMS > 0 {
		dst = append(dst, `,"metadata":`...)
		if len(metadata) > 0 {
			dst = append(dst, metadata[:len(metadata)-1]...)
		} else {
			dst = append(dst, '{')
		}
		dst = append(appendDelivery(dst, again, d), '}')
	}
	if m.Body == nil {
		return append(dst, '}')
	}
	dst = append(dst, `,"payload":`...)
	if m.Media == agora.MediaText {
		dst = appendTextBody(dst, m.Body)
	} else {
		dst = appendBody(dst, m)
	}
	return append(dst, '}')
}

// appendDelivery appends what Agora adds to metadata, which so far end in a member or a brace, white space aside.
func appendDelivery(dst []byte, again bool, d Delivery) []byte {
	if d.DeadlineMS > 0 {
		dst = append(comma(dst), `"deadline_ms":`...)
		dst = strconv.AppendInt(dst, d.DeadlineMS, 10)
	}
	if again {
		dst = append(comma(dst), `"redelivered":true`...)
	}
	return dst
}

// comma appends a comma, unless an object has just been opened.
func comma(dst []byte) []byte {
	for i := len(dst) - 1; ; i-- {
		switch dst[i] {
		case ' ', '\t', '\n', '\r':
			continue
		case '{':
			return dst
		}
		return append(dst, ',')
	}
}

// spellingOf returns the type of a message that did not come as an envelope.
func spellingOf(m *agora.Message) Type {
	switch {
	case m.Kind == agora.Control || m.Part == agora.Cancel:
		return Notification
	case m.Part == agora.Chunk || m.Kind == agora.Reply && m.Part == agora.Start:
		return Chunk
	case m.Kind == agora.Reply:
		return Response
	case m.Part == agora.End:
		return Notification
	}
	return Request
}

// appendHeader appends the beginning of an envelope, up to its payload.
func appendHeader(dst []byte, m *agora.Message, d Delivery, t Type) []byte {
	said := Said{ID: d.ID, Parent: cmp.Or(d.Parent, m.Meta.Parent), Type: t, To: string(m.To.Agent), Time: d.Time, seq: m.Seq}
	dst = said.appendHeader(dst, string(m.From))
	dst = append(dst, `,"metadata":{`...)
	if trace := cmp.Or(wire.TraceID(m.Meta.Trace), d.Trace); trace != "" {
		dst = append(rawjson.AppendString(append(dst, `"trace_id":`...), trace), ',')
	}
	dst = append(dst, `"ttl":`+hops...)
	if m.Kind == agora.Request && m.Part == agora.Start {
		dst = append(dst, `,"stream":true`...)
	}
	return append(appendDelivery(dst, d.Redelivered || m.Again, d), '}')
}

// appendPayload appends the payload of a message that did not come as an envelope.
func appendPayload(dst []byte, m *agora.Message) []byte {
	switch {
	case m.Kind == agora.Control && m.AbortBody().Code == agora.Timeout: // it is not given up by whoever asked
		return append(dst, `,"payload":{"action":"cancel","code":"TIMEOUT"}`...)
	case m.Kind == agora.Control && m.AbortBody().Code == agora.MessageTooLarge:
		return append(dst, `,"payload":{"action":"cancel","code":"MESSAGE_TOO_LARGE"}`...)
	case m.Kind == agora.Control || m.Part == agora.Cancel:
		return append(dst, `,"payload":{"action":"cancel"}`...)
	case m.Kind == agora.Request && m.Part == agora.End:
		return append(dst, `,"payload":{"action":"stream_end"}`...)
	case m.Body == nil && m.Part == agora.End:
		return append(dst, `,"payload":{}`...)
	case m.Body == nil:
		return dst
	}
	dst = append(dst, `,"payload":`...)
	if spellingOf(m) == Chunk {
		return appendPiece(dst, m)
	}
	return appendBody(dst, m)
}

// appendBody appends a body: text as a string, JSON as it is, bytes as an object.
func appendBody(dst []byte, m *agora.Message) []byte {
	if m.Media == "" || m.Media == agora.MediaText {
		return wire.AppendBody(dst, m)
	}
	dst = rawjson.AppendString(append(dst, `{"media":`...), wire.Media(m))
	dst = append(base64.StdEncoding.AppendEncode(append(dst, `,"data":"`...), m.Body), '"')
	if item := wire.Item(m); item > 0 {
		dst = strconv.AppendUint(append(dst, `,"item":`...), item, 10)
	}
	return append(dst, '}')
}

// appendPiece appends the body of a chunk: text, whether a string or not, as {"text":…}.
func appendPiece(dst []byte, m *agora.Message) []byte {
	switch {
	case m.Media == agora.MediaText:
		return appendTextBody(dst, m.Body)
	case m.Media == "" && len(m.Body) > 0 && m.Body[0] == '"':
		return append(append(append(dst, textBefore...), m.Body[1:]...), '}')
	}
	return appendBody(dst, m)
}
