package iat

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/agora-relay/agora/wire"
)

// Type is header.type.
type Type string

// The types.
const (
	Request      Type = "request"      // wants a response
	Response     Type = "response"     // answers the request that ParentID names
	Notification Type = "notification" // wants none
	ChunkType    Type = "chunk"        // a piece of the answer to what ParentID names
)

// Envelope is a message of the dialect. Payload keeps its bytes, both ways.
type Envelope struct {
	Header   Header          `json:"header"`
	Metadata Metadata        `json:"metadata"`
	Payload  json.RawMessage `json:"payload,omitempty"`
}

// Header says what an envelope is.
type Header struct {
	MsgID     string `json:"msg_id"`              // a new one is made where it is empty
	ParentID  string `json:"parent_id,omitempty"` // what it answers, or belongs to
	Type      Type   `json:"type"`
	From      string `json:"from,omitempty"` // filled in; what others write was checked by the edge
	To        string `json:"to,omitempty"`
	Timestamp int64  `json:"timestamp,omitempty"` // Unix seconds; filled in
}

// Metadata is what travels beside the payload.
type Metadata struct {
	TraceID       string `json:"trace_id,omitempty"`
	TTL           int64  `json:"ttl,omitempty"`            // hops that are left; 0: no budget
	DeadlineMS    int64  `json:"deadline_ms,omitempty"`    // time left; 0: none
	WorkspaceRoot string `json:"workspace_root,omitempty"` // that the sender of a request has declared; the cluster says it
	Redelivered   bool   `json:"redelivered,omitempty"`    // the agent may have been given it before
}

// deadline returns the time left; 0 for none.
func (e *Envelope) deadline() time.Duration {
	return time.Duration(e.Metadata.DeadlineMS) * time.Millisecond
}

// append appends the envelope as it is written. The payload is spliced.
func (e *Envelope) append(dst []byte) ([]byte, error) {
	header, err := marshal(e.Header)
	if err != nil {
		return nil, err
	}
	metadata, err := marshal(e.Metadata)
	if err != nil {
		return nil, err
	}
	dst = append(append(dst, `{"header":`...), header...)
	dst = append(append(dst, `,"metadata":`...), metadata...)
	if e.Payload != nil {
		dst = append(append(dst, `,"payload":`...), e.Payload...)
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON reads an envelope by the keys that it has, letter by letter, as edges read it: what its sender has
// spelt otherwise is of no meaning, here as there.
func (e *Envelope) UnmarshalJSON(b []byte) error {
	var all Envelope
	var header, metadata json.RawMessage
	err := readMembers(b, map[string]any{"header": &header, "metadata": &metadata, "payload": &all.Payload})
	if err == nil {
		h := &all.Header
		err = readMembers(header, map[string]any{
			"msg_id": &h.MsgID, "parent_id": &h.ParentID, "type": &h.Type, "from": &h.From, "to": &h.To, "timestamp": &h.Timestamp,
		})
	}
	if err == nil {
		m := &all.Metadata
		err = readMembers(metadata, map[string]any{
			"trace_id": &m.TraceID, "ttl": &m.TTL, "deadline_ms": &m.DeadlineMS, "workspace_root": &m.WorkspaceRoot, "redelivered": &m.Redelivered,
		})
	}
	if err == nil {
		*e = all
	}
	return err
}

// readMembers reads members of an object into values, by their exact keys. What is absent stays as it is.
func readMembers(object json.RawMessage, into map[string]any) error {
	if len(object) == 0 {
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return err
	}
	for key, value := range into {
		raw, is := all[key]
		if !is {
			continue
		}
		if keeps, is := value.(*json.RawMessage); is {
			*keeps = raw
		} else if err := json.Unmarshal(raw, value); err != nil {
			return err
		}
	}
	return nil
}

// action returns payload.action, as edges read it; "" where there is none, or several.
func (e *Envelope) action() string { return wire.ActionOf(e.Payload) }

// marshal returns v as JSON, with the characters of its strings as they are. A [json.RawMessage] keeps its bytes.
func marshal(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok && raw != nil {
		return raw, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// member is one of an object that is written.
type member struct {
	key   string
	value any // left out where it is nil
}

// object returns an object. Members that are [json.RawMessage] keep their bytes.
func object(members ...member) (json.RawMessage, error) {
	b := json.RawMessage{'{'}
	for _, m := range members {
		if m.value == nil {
			continue
		}
		value, err := marshal(m.value)
		if err != nil {
			return nil, err
		}
		key, err := marshal(m.key)
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, key...), ':'), value...)
	}
	return append(b, '}'), nil
}

// Text returns a text as JSON, for Execute.Context.
func Text(s string) json.RawMessage {
	b, err := marshal(s)
	if err != nil {
		panic(err) // a string can always be written
	}
	return b
}
