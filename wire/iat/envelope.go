package iat

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
)

// Type is header.type (IAT §2.2). The zero value is none of them.
type Type uint8

// The types.
const (
	Request      Type = iota + 1 // wants a response
	Response                     // answers the request that parent_id names
	Notification                 // wants none (IAT §3.1, R01)
	Chunk                        // a piece of what parent_id names (IAT §3.1, R02)
)

var typeNames = [...]string{Request: "request", Response: "response", Notification: "notification", Chunk: "chunk"}

// String returns the type as the header spells it, "" for none.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return ""
}

// typeOf returns the type of that name, 0 for none.
func typeOf(name string) Type {
	for t := Request; t <= Chunk; t++ {
		if typeNames[t] == name {
			return t
		}
	}
	return 0
}

// Envelope is a decoded envelope (IAT §2.2). Payload, and what [Envelope.AppendHead] splices, are slices of the bytes that it was
// decoded from: who keeps them longer than those bytes clones them.
type Envelope struct {
	// ID is header.msg_id; never empty.
	ID string
	// Parent is header.parent_id; never empty in a response or a chunk.
	Parent string
	// Type is header.type.
	Type Type
	// From is header.from, an agent id, or empty. It is what the client wrote, and no proof of anything.
	From string
	// To is header.to, an agent id; empty only where Action is [ActionRegister].
	To string

	// Trace is metadata.trace_id, where that is a string. Of another kind it passes, and is not read.
	Trace string
	// TTL is metadata.ttl, 1 or more, if HasTTL: the hops that are left, the one to Agora included.
	TTL    uint64
	HasTTL bool
	// Token is metadata.auth_token without a leading "bearer " (IAT §5). It is never forwarded, and not to be logged.
	Token string
	// Deadline is metadata.deadline_ms, the time left; 0 where there is none (extension).
	Deadline time.Duration
	// Stream is metadata.stream: the request opens a stream, whose chunks name it, and whose end is a notification of [ActionStreamEnd] (extension).
	Stream bool
	// Receipts are metadata.receipts, the tiers that are asked for (extension).
	Receipts agora.Receipts

	// Payload is any JSON value; nil where there is none, and "null" where null was written.
	Payload json.RawMessage
	// Action is payload.action, where payload is an object and that a string (IAT §4).
	Action string

	splice splice
}

// Clone returns a copy that has nothing in common with the bytes that e was decoded from.
func (e *Envelope) Clone() *Envelope {
	c := *e
	c.Payload, c.splice.header, c.splice.metadata = bytes.Clone(e.Payload), bytes.Clone(e.splice.header), bytes.Clone(e.splice.metadata)
	return &c
}

// splice is where header and metadata are changed on their way.
type splice struct {
	header   []byte
	from     span // of header.from's value
	metadata []byte
	ttl      span    // of metadata.ttl's value
	cuts     [5]span // what is taken out of metadata, in order
	ncuts    int
	members  int // of metadata that stay
}

// span is where something stands; to is 0 where it is absent.
type span struct{ from, to int }
