package iat

import (
	"bytes"
	"encoding/json"
	"time"
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

// action returns payload.action; "" where there is none.
func (e *Envelope) action() string {
	var p struct{ Action string }
	_ = json.Unmarshal(e.Payload, &p) // what is no object has none
	return p.Action
}

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
