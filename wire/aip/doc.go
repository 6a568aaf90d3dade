// Package aip is the wire of the Agent Interaction Protocol (AIP): the messages and services of its gateway, agents and toolboxes, generated from
// aip.proto, and what they are as messages of the core, there and back. It does no I/O.
//
// Messages that are only routed are never decoded: their routing fields are read from the bytes ([ReadEnvelope], [ReadToolEnvelope]), and
// everything else of them, unknown fields included, stays as it came.
package aip

// Dialect is the Dialect of an agent that has registered as a node of AIP.
const Dialect = "aip"

// Bounds of how content is cut on its way to an agent with a mailbox, in bytes.
const (
	MaxText    = 64 << 10  // of text in a chunk
	MaxBytes   = 256 << 10 // of bytes in a chunk
	MaxPayload = 512 << 10 // of a payload: larger content comes in chunks
	MaxMessage = 16 << 20  // of a message of AIP, where no setting says otherwise
)

// Bounds of what is decoded, so that what is small on the wire takes no room out of proportion.
const (
	MaxItems        = 4096    // of the content of a message that goes to, or comes from, an agent of another dialect
	MaxRegistration = 1 << 20 // bytes of what a node registers with; limits.card bounds it closer
)

// maxDepth bounds the nesting of a text that counts as JSON: with its frame around it, it is one that agents may send.
const maxDepth = 63
