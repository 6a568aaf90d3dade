package wire

import (
	"encoding/json"

	"github.com/agora-relay/agora"
)

// Frame is any frame of Agora relay and Agora spaces, in either direction:
// Type says which of the fields count, and the table of frames which of those
// must be there. Raw fields of a decoded frame are slices of the bytes it was
// decoded from: the one who keeps them longer than those bytes clones them.
//
// "relay §n" and "spaces" name the section of the seed that a field comes
// from; the other fields are extensions and follow the seed's on the wire.
type Frame struct {
	// Type is the discriminator of every frame (relay, "Message Types"; spaces, common fields).
	Type string
	// ID is the sender's id of a request, repeated in its answer (spaces,
	// common fields). On send*, reply* and cancel it is an extension: the
	// idempotency key, and the request for a receipt. In register and
	// registered it is the agent's id, as AgentID.
	ID string
	// Timestamp is Unix seconds in agent.heartbeat, and opaque wherever a
	// client writes it (spaces, common fields).
	Timestamp json.RawMessage

	// To is the addressed agent in send*, reply* and cancel from clients
	// (relay §1, §3); in receipt and error the agent that the failed or
	// receipted frame was for.
	To string
	// From is the agent that a forwarded frame comes from (relay §2, §3);
	// servers write it, clients never do.
	From string
	// StreamID ties the parts of a stream together (relay §1).
	StreamID string
	// Stream in send, reply, message and space.publish says that parts will
	// follow (relay §1). Without it StreamID counts for nothing.
	Stream bool
	// Index is the position of a part in its stream, if HasIndex (extension);
	// in receipt the last part that the receipt speaks of.
	Index    uint32
	HasIndex bool
	// N numbers the frames of a session to one receiver, from 1 (extension);
	// in receipt the last frame that the receipt speaks of.
	N uint64
	// Session is the short id of the sender's session; it gives N its meaning
	// at the receiver (extension).
	Session string
	// Payload is any JSON value, of send, reply and message (relay §1, §2), and of
	// the end of a stream (extension); nil when absent, and "null" when null was written.
	Payload json.RawMessage
	// Chunk is the raw JSON string of send_chunk, reply_chunk and
	// message_chunk, quotes included (relay §1, §2).
	Chunk json.RawMessage
	// Media is the media type of a payload, chunk or body that is a string of
	// base64; empty where it is JSON, or text (extension).
	Media string
	// Item says of which item of its stream a chunk of bytes is a part, from 1: the
	// parts of one are put together in order; 0 where it is one by itself (extension).
	Item uint64
	// Receipts are the tiers that are asked for (extension).
	Receipts agora.Receipts
	// DeadlineMS is the time left to a request or stream, in milliseconds, of
	// send, reply and message; 0 when there is none (extension).
	DeadlineMS int64

	// Traceparent says which trace a message, a stream's start or an event
	// belongs to, as W3C Trace Context writes it; empty where there is none, or
	// a client wrote none that can be read (extension).
	Traceparent string

	// Agent is the card of agent.register and the confirmation of
	// agent.registered (spaces, agent.register, agent.registered).
	Agent *Agent
	// AgentID is the agent that register, registered, agent.register or
	// agent.registered name; set by decoding, and written by Append only as
	// the id of register and registered where ID is empty.
	AgentID string
	// Name and Endpoint are what register says of the agent besides its id (short registration).
	Name, Endpoint string
	// Listing is what lists are asked for and answered by.
	Listing
	// Skill, Goal and Limit are what agents.find looks for, and how many it wants at most; 0 leaves that to the edge
	// (extension).
	Skill, Goal string
	Limit       uint64

	// Space is the name of the space that the frame is about (spaces, all of
	// space.*); in ack, gap, receipt and error an extension.
	Space string
	// EventID names an event that comes in parts (spaces, space.event.delta).
	EventID string
	// Data is the raw object of space.publish, space.publish.delta,
	// space.event and space.event.delta (spaces).
	Data json.RawMessage
	// Members of a space, in space.joined and space.members (spaces).
	Members []string
	// Joined and Left say who changed space.members; the unused one is nil
	// and is written as null (spaces, space.members).
	Joined, Left *string
	// Spaces is the answer of space.list, not nil in an answer (spaces, space.list).
	Spaces []ListedSpace
	// Positions is "spaces" of register and agent.register: by name, the last
	// seq that the client has of each space (extension).
	Positions map[string]uint64
	// History asks space.join for that many of the latest events (extension).
	History int

	// ToolName, Arguments and ParentID are a call_tool: which tool is called,
	// with what, any JSON value or nil, and the request that the call belongs to.
	ToolName  string
	Arguments json.RawMessage
	ParentID  string
	// Method, Path, Params and Input are the request of a handoff; Params an
	// object, Input any JSON value, and either nil when absent (extension).
	Method, Path  string
	Params, Input json.RawMessage
	// Card is any JSON value: what an agent says of itself, in card (extension).
	Card json.RawMessage
	// Body is what is answered to a call_tool or a handoff, any JSON value; nil
	// when absent. Error is why nothing is, nil where something is. Both are of
	// tool.chunk, tool.result, handoff.chunk and handoff.result (extension).
	Body  json.RawMessage
	Error *Failure
	// StatusCode is the code of a handoff.result, as of HTTP (extension).
	StatusCode int

	// Code, Message and RequestID are an error (spaces, error format);
	// RequestID is also the id that a receipt answers, and on send, reply and
	// message the name of the request, where the payload does not have it (extension).
	Code, Message, RequestID string
	// Status is the tier that a receipt reports: stored, delivered or acked (extension).
	Status string
	// RetryAfterMS in error says when trying again makes sense (extension).
	RetryAfterMS int64
	// AfterMS in agent.reconnect says how long to wait before reconnecting (extension).
	AfterMS int64

	// Seq is the position of a delivered frame in the mailbox or space; in
	// ack the position up to which all has arrived, in space.joined the
	// position of the space, in a stored receipt that of the stored frame (extension).
	Seq uint64
	// LastSeq is the last position that the client has, in register,
	// agent.register and space.join, and in their answers the one after which
	// delivery continues; if HasLastSeq (extension).
	LastSeq    uint64
	HasLastSeq bool
	// MaxFrame is the largest frame, in bytes, that a client takes, in register
	// and agent.register; 0 where it does not say (extension).
	MaxFrame uint64
	// FromSeq and ToSeq bound what a gap may have lost (extension).
	FromSeq, ToSeq uint64
	// Redelivered marks a frame that may have been given or stored before (extension).
	Redelivered bool

	// ResumeToken takes over the running session: presented in register and
	// agent.register, handed out in their answers (extension).
	ResumeToken string
	// HeartbeatInterval is the seconds between heartbeats, in registered and
	// agent.registered (extension).
	HeartbeatInterval float64
	Continued

	// Token is credentials, in agent.refresh alone (extension).
	Token string
	// Expires, in Unix seconds, is when the connection ends unless its
	// credentials are renewed, in agent.refreshed, registered and
	// agent.registered; 0 for never (extension).
	Expires uint64
}

// Continued is what registered and agent.registered say of a session that continues (extension).
type Continued struct {
	// Resumed says that the session of before continues: numbers (N), open streams and memberships with it.
	Resumed bool
	// NextN is an object of numbers by agent id: which number follows those that were used towards each. SpaceNextN is
	// the same by space.
	NextN, SpaceNextN json.RawMessage
}

// Agent is the agent object of agent.register (ID, Type, Capabilities,
// Metadata; Domain, Description, Skills and Tools are extensions) and of agent.registered (ID, ConnectionID).
type Agent struct {
	ID           string
	ConnectionID string
	Type         string
	Capabilities []string
	Metadata     json.RawMessage // an object; nil when absent or null
	Domain       string
	Description  string
	Skills       []Skill
	Tools        []Skill
}

// Skill is a skill or a tool: an object, or its name alone.
type Skill struct {
	Name        string
	Description string
	Schema      json.RawMessage // any value; nil when absent or null
}

// Listing is what a frame says of a list of agents or spaces.
type Listing struct {
	// Agents is the directory in agents (short registration, list), and what was found in agents.found (extension).
	Agents []ListedAgent
	// After is what list and space.list go on behind, an agent or a space: the Next of the
	// answer before, which is empty where there are no more (extension).
	After, Next string
	// LeftOut names what agents.found and space.joined have left out, as all would be too large
	// for a frame: "schemas", "descriptions", "agents", "members" (extension).
	LeftOut []string
}

// ListedAgent is one entry of agents, which has the first four, and of agents.found. What is empty is left out, but for
// ID, Name and RegisteredAt.
type ListedAgent struct {
	ID, Name, Endpoint, RegisteredAt           string
	Status, Dialect, Domain, Description, Type string
	Version, Peer                              string
	Capabilities, Addresses                    []string
	Skills, Tools                              []Skill
	Metadata                                   json.RawMessage
}

// Failure is the error of a tool.result or handoff.result. Path is where in what was asked; it may be empty.
type Failure struct {
	Code, Message, Path string
}

// ListedSpace is one entry of space.list; Type is public or system.
type ListedSpace struct {
	ID, Type    string
	MemberCount int
}
