// Package wire holds the frames of Agora relay and Agora spaces: their Go
// type, the table that says what each consists of, and their conversion to and
// from agora.Message. Servers and clients use the same ones.
//
// A frame is decoded once on its way in, by a scanner that looks at the top
// level only and checks the rest as JSON; payloads are never decoded and never
// encoded again, but spliced as the bytes they came in.
package wire

import "cmp"

// Subprotocol is what WebSockets of Agora may be asked for by (Sec-WebSocket-Protocol, RFC 6455 §1.9). Asking for none is as good.
const Subprotocol = "agora"

// Limits bound what [DecodeRequest] takes. The zero value of each means its default.
type Limits struct {
	Depth int // objects and arrays that may stand in each other, the frame itself counted; 64
	Name  int // runes of an id, a stream id, an event id, a space, a name; 256
	Count int // entries of a list inside a frame: capabilities, positions; 4096
}

func (l Limits) withDefaults() Limits {
	l.Depth = cmp.Or(l.Depth, 64)
	l.Name = cmp.Or(l.Name, 256)
	l.Count = cmp.Or(l.Count, 4096)
	return l
}

// answerLimits hardly bound what a client takes from its server; the depth
// keeps the stack small.
var answerLimits = Limits{Depth: 1024, Name: 1 << 30, Count: 1 << 30}
