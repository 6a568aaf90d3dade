package iat

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

// Said is an envelope that the cluster itself says, as the agent agora. What is empty is left out, but for ID and Type.
type Said struct {
	ID      string    // msg_id
	Parent  string    // parent_id
	Type    Type      //
	To      string    //
	Time    time.Time // timestamp
	Payload []byte    // any JSON value

	seq uint64 // ID is agora- and this where it is empty
}

// Append appends the envelope (IAT §2.2). It allocates nothing when dst has room.
func (s Said) Append(dst []byte) []byte {
	dst = s.appendHeader(dst, string(agora.Cluster))
	if s.Payload != nil {
		dst = append(append(dst, `,"payload":`...), s.Payload...)
	}
	return append(dst, '}')
}

// AppendFault appends the response that tells that err is why something was refused or failed: the code and message of it as an
// agent may see it, when trying again makes sense, and of a *[Fault] the place. Parent and To of s are, where they are
// empty, what the Fault knows of what was refused; Type and Payload count for nothing.
func AppendFault(dst []byte, s Said, err error) []byte {
	s.Type = Response
	path := ""
	if f, ok := errors.AsType[*Fault](err); ok {
		path = f.Path
		if s.Parent == "" {
			s.Parent = f.ID
		}
		if s.To == "" {
			s.To = f.From
		}
	}
	e := agora.AsError(err)
	dst = s.appendHeader(dst, string(agora.Cluster))
	dst = appendError(append(dst, `,"payload":`...), e.Code, e.Message)
	if path != "" {
		dst = rawjson.AppendString(append(dst, `,"path":`...), path)
	}
	if e.RetryAfter > 0 {
		dst = append(dst, `,"retry_after_ms":`...)
		dst = strconv.AppendInt(dst, int64((e.RetryAfter+time.Millisecond-1)/time.Millisecond), 10)
	}
	return append(dst, `}}}`...)
}

// appendError appends the payload of an error but for its end, two braces.
func appendError(dst []byte, code agora.Code, message string) []byte {
	dst = rawjson.AppendString(append(dst, `{"error":{"code":`...), string(code))
	return rawjson.AppendString(append(dst, `,"message":`...), message)
}

// appendHeader appends the beginning of the envelope.
func (s *Said) appendHeader(dst []byte, from string) []byte {
	dst = append(dst, `{"header":{"msg_id":`...)
	if s.ID == "" {
		dst = append(strconv.AppendUint(append(dst, `"agora-`...), s.seq, 10), '"')
	} else {
		dst = rawjson.AppendString(dst, s.ID)
	}
	if s.Parent != "" {
		dst = rawjson.AppendString(append(dst, `,"parent_id":`...), s.Parent)
	}
	dst = rawjson.AppendString(append(dst, `,"type":`...), s.Type.String())
	dst = rawjson.AppendString(append(dst, `,"from":`...), from)
	if s.To != "" {
		dst = rawjson.AppendString(append(dst, `,"to":`...), s.To)
	}
	if !s.Time.IsZero() {
		dst = strconv.AppendInt(append(dst, `,"timestamp":`...), s.Time.Unix(), 10)
	}
	return append(dst, '}')
}

// said returns the beginning of the envelope in which the cluster itself tells of m.
func said(m *agora.Message, d Delivery, t Type, parent string) Said {
	return Said{ID: d.ID, Parent: parent, Type: t, To: string(m.To.Agent), Time: d.Time, seq: m.Seq}
}

// appendTold appends the beginning of an envelope of the cluster's, up to its payload's value.
func appendTold(dst []byte, m *agora.Message, d Delivery, s Said) []byte {
	dst = s.appendHeader(dst, string(agora.Cluster))
	if d.Redelivered || m.Again {
		dst = append(dst, `,"metadata":{"redelivered":true}`...)
	}
	return append(dst, `,"payload":`...)
}

func appendGap(dst []byte, m *agora.Message, d Delivery) []byte {
	dst = appendTold(dst, m, d, said(m, d, Notification, ""))
	dst = strconv.AppendUint(append(dst, `{"action":"gap","from_seq":`...), m.N, 10)
	dst = strconv.AppendUint(append(dst, `,"to_seq":`...), m.Seq, 10)
	return append(dst, `}}`...)
}

func appendReceipt(dst []byte, m *agora.Message, d Delivery) []byte {
	r, _ := m.ReceiptBody() // Shows has read it
	dst = appendTold(dst, m, d, said(m, d, Notification, r.ID))
	dst = rawjson.AppendString(append(dst, `{"action":"receipt","status":`...), cmp.Or(wire.TierName(r.Tier), "undelivered"))
	dst = rawjson.AppendString(append(dst, `,"agent":`...), string(m.From))
	switch {
	case r.ID != "":
	case r.Stream != "":
		dst = rawjson.AppendString(append(dst, `,"stream":`...), r.Stream)
		dst = strconv.AppendUint(append(dst, `,"index":`...), uint64(r.Index), 10)
	case r.N > 0:
		dst = strconv.AppendUint(append(dst, `,"n":`...), r.N, 10)
	}
	return append(dst, `}}`...)
}

// appendAbort appends what tells that the cluster gave up a stream or a request.
func appendAbort(dst []byte, m *agora.Message, d Delivery) []byte {
	a := m.AbortBody()
	if d.Parent == "" {
		d.Parent = a.Request
	}
	action := ""
	switch {
	case m.Kind == agora.Request:
		action = "stream_aborted"
	case m.Kind == agora.Control && m.Stream == "" && (m.Meta.Call != "" || m.Seq > 0 && !m.To.IsBox()):
		// What a mailbox or a call tells of a request is told to who was asked: nobody waits for the answer any more.
		action = "cancel"
	}
	if action == "" {
		dst = appendHeader(dst, m, d, Response)
		dst = appendError(append(dst, `,"payload":`...), a.Code, wire.AbortReason(a.Code, m.Stream != ""))
		return append(dst, `}}}`...)
	}
	dst = appendHeader(dst, m, d, Notification)
	dst = rawjson.AppendString(append(dst, `,"payload":{"action":`...), action)
	dst = rawjson.AppendString(append(dst, `,"code":`...), string(a.Code))
	return append(dst, `}}`...)
}
