// Package iat holds the IAT envelope: its Go type, how it is decoded and checked, and how messages of the cluster, whatever
// their dialect, become envelopes. "IAT §n" names a section of the IAT protocol; what has none is Agora's extension.
//
// An envelope is decoded once on its way in, by a scanner that reads the members that concern Agora and checks the rest as
// JSON. Payloads, and all other members of header and metadata, are never encoded again: they are spliced as the bytes
// they came in.
package iat

import (
	"cmp"
	"time"
)

// Limits bound what [Decode] takes; how large an envelope may be is for the caller to bound. The zero value of each means its default.
type Limits struct {
	Depth int // objects and lists that may stand in each other, the envelope itself counted; 64
	Name  int // runes of msg_id, parent_id and trace_id; 256
}

func (l Limits) withDefaults() Limits {
	l.Depth = cmp.Or(l.Depth, 64)
	l.Name = cmp.Or(l.Name, 256)
	return l
}

// Bounds that no setting moves.
const (
	MaxDeadline = 24 * time.Hour // of metadata.deadline_ms

	maxToken  = 16 << 10 // runes of metadata.auth_token
	maxSplice = 48 << 10 // bytes of header and metadata together, so that they fit in a message's Head with what Agora adds
)
