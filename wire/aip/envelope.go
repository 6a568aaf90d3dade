package aip

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of the routing fields, which AgentMessage, ToolRequest and ToolResponse share.
const (
	fieldSender   = 1
	fieldReceiver = 2
	fieldSession  = 3
)

// Numbers of other fields of AgentMessage, ToolRequest and ToolResponse.
const (
	fieldStatus    = 4 // AgentMessage.session_status
	fieldMessageID = 6 // AgentMessage.message_id
	fieldContent   = 8 // AgentMessage.content

	fieldTool      = 4 // ToolRequest.tool_name
	fieldArguments = 5 // ToolRequest.arguments

	fieldIsError     = 4 // ToolResponse.is_error
	fieldErrorText   = 5 // ToolResponse.error_message
	fieldToolContent = 6 // ToolResponse.content
)

// Envelope is what routes an AgentMessage. Its texts are slices of the bytes that it was read from, valid UTF-8, and empty where the message has none.
type Envelope struct {
	Sender, Receiver, Session []byte
	Status                    AgentMessage_SessionStatus // maybe one that the protocol does not have
}

// ReadEnvelope reads the routing fields of an encoded AgentMessage, as protobuf reads them: of a field that stands several times the last one counts. It looks into
// nothing else, and allocates nothing. INVALID_REQUEST where the bytes are malformed.
func ReadEnvelope(raw []byte) (Envelope, error) {
	var e Envelope
	f := fields{rest: raw}
	for f.next() {
		switch f.number {
		case fieldSender:
			f.text(&e.Sender)
		case fieldReceiver:
			f.text(&e.Receiver)
		case fieldSession:
			f.text(&e.Session)
		case fieldStatus:
			if f.kind == protowire.VarintType {
				e.Status = AgentMessage_SessionStatus(int32(f.varint)) // cut off, as protobuf does
			}
		}
	}
	return e, malformed("AgentMessage", f.err)
}

// ToolEnvelope is what routes a ToolRequest, and what is called. Its texts are slices as those of an [Envelope].
type ToolEnvelope struct {
	Sender, Receiver, Session []byte
	Tool                      []byte
	Arguments                 []byte // JSON, by the protocol; not looked at
}

// ReadToolEnvelope reads an encoded ToolRequest as [ReadEnvelope] reads an AgentMessage.
func ReadToolEnvelope(raw []byte) (ToolEnvelope, error) {
	var e ToolEnvelope
	f := fields{rest: raw}
	for f.next() {
		switch f.number {
		case fieldSender:
			f.text(&e.Sender)
		case fieldReceiver:
			f.text(&e.Receiver)
		case fieldSession:
			f.text(&e.Session)
		case fieldTool:
			f.text(&e.Tool)
		case fieldArguments:
			f.text(&e.Arguments)
		}
	}
	return e, malformed("ToolRequest", f.err)
}

// AppendSender appends to an encoded AgentMessage, ToolRequest or ToolResponse what makes another sender of it: the field once more, as the last one counts. All that
// stands before keeps its bytes.
func AppendSender(dst []byte, sender string) []byte { return appendField(dst, fieldSender, sender) }

// AppendReceiver is [AppendSender] for the receiver.
func AppendReceiver(dst []byte, receiver string) []byte {
	return appendField(dst, fieldReceiver, receiver)
}

// Readdress returns a well-formed message with another sender and receiver, unknown fields and all else as it was: raw itself where both are what they
// are to be, else a copy. is and was are who they are to be, and who they are, as [ReadEnvelope] or [ReadToolEnvelope] have read it.
func Readdress(raw []byte, is, was Route) []byte {
	if is == was {
		return raw
	}
	dst := append(make([]byte, 0, len(raw)+len(is.Sender)+len(is.Receiver)+2*(1+protowire.SizeVarint(1<<32))), raw...)
	if is.Sender != was.Sender {
		dst = AppendSender(dst, is.Sender)
	}
	if is.Receiver != was.Receiver {
		dst = AppendReceiver(dst, is.Receiver)
	}
	return dst
}

// Route is who sends a message, and to whom.
type Route struct{ Sender, Receiver string }

// Route returns who sends the message, and to whom.
func (e *Envelope) Route() Route { return Route{string(e.Sender), string(e.Receiver)} }

// Route returns who sends the request, and to whom.
func (e *ToolEnvelope) Route() Route { return Route{string(e.Sender), string(e.Receiver)} }
