// Package p2p is the wire of the two libp2p protocols by which agents discover each other and delegate work: a request for a
// card, which has no form, and a request that is handed off, how it is read from a stream, which request to the agent's own HTTP
// server it stands for, and how failures are told in place of an answer. PROTOCOL.md, "Card and handoff (libp2p)". It dials nothing
// and knows no libp2p: a stream is an [io.Reader].
//
// params and input_data are never encoded again: they are spliced as the bytes they came in.
package p2p

import "time"

// The protocols, by the ids under which hosts offer them.
const (
	CardProtocol    = "/ai-agent/card/1.0.0"
	HandoffProtocol = "/ai-agent/handoff/1.0.0"
)

// Dialect is the Dialect of an agent that is reached by these protocols.
const Dialect = "p2p"

// MediaCard is the media type of an agent's Registration that is its card's own bytes.
const MediaCard = "application/json"

// What bounds a card and a handoff where no setting says otherwise. Times are for the owner of the stream to keep.
const (
	MaxCard    = 1 << 20  // bytes of a card
	MaxRequest = 16 << 20 // bytes of a request
	MaxAnswer  = 64 << 20 // bytes of an answer; a stream on which more comes is reset, never ended

	CardTime      = 2 * time.Second  // until an agent has given its card
	RequestTime   = 30 * time.Second // until a request is complete
	FirstByteTime = 10 * time.Second // until the first byte of the answer
	IdleTime      = time.Minute      // between two bytes of the answer
)

// Bounds that no setting moves.
const (
	MaxPath = 64 << 10 // bytes of a path, query included, as written and as filled

	maxDepth = 64  // objects and lists that stand in each other in a request or a card
	maxName  = 64  // bytes of the name of a parameter
	maxText  = 512 // runes of the text of a failure
)
