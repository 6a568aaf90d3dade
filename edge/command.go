package edge

import (
	"encoding/json"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/spaces"
)

// Verb is what a command does.
type Verb string

// The verbs, each with the fields of a Command that count for it beside ID, Receipts and Told.
const (
	Send          Verb = "send"         // Message, with the fields of Session.Do; Request
	Answer        Verb = "answer"       // Message: a part of an answer to the request that its Meta.Parent names
	Publish       Verb = "publish"      // Space, N, Data, Trace: an event
	OpenEvent     Verb = "open"         // the same, of an event that is streamed
	ContinueEvent Verb = "part"         // Space, Event, Part, N, Data: a part of it
	CancelEvent   Verb = "cancel_event" // Space, which may be empty, and Event
	Join          Verb = "join"         // Space, Where, Done
	Leave         Verb = "leave"        // Space, Done
	Ack           Verb = "ack"          // Space, empty for the mailbox, and Seq

	verbAlive  Verb = "alive"  // Principal: of an agent that an edge has dialled, like the next
	verbUpdate Verb = "update" // Principal, Card, Detail: its card
)

// Command is one verb of an agent, from whatever door. [Session.Do] does it in the session that is here; [Actor.Do] at
// the edge that holds the session, which gets the same value as JSON.
type Command struct {
	Verb     Verb           `json:"verb"`
	Agent    agora.Address  `json:"agent"`          // whose session does it; [Actor.Do] sets it
	ID       string         `json:"id"`             // of the frame: names it in receipts and errors
	Receipts agora.Receipts `json:"want,omitempty"` // tiers asked for on the frame; those of the connection are added
	Trace    string         `json:"trace,omitempty"`

	Request string        `json:"request,omitempty"` // the name that the reply to a request will carry: for its deadline
	Message agora.Message `json:"message,omitzero"`

	Space string          `json:"space,omitempty"`
	Event string          `json:"event,omitempty"` // id of an event, or of the frame that began it
	Part  agora.Part      `json:"part,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	Where spaces.Where    `json:"where,omitzero"`
	Seq   uint64          `json:"seq,omitempty"`

	Principal string `json:"principal,omitempty"` // has to be that of the session
	Card      []byte `json:"card,omitempty"`      // as presence packs it, like the next
	Detail    []byte `json:"detail,omitempty"`

	N uint64 `json:"-"` // number of an event's frame, 0 where the client does not number; a message has its own
	// Told is told what the connection would be told where it is nil, on a goroutine that must not be blocked.
	Told func(Notice) `json:"-"`
	// Done queues the answer: it is called before Do returns, unless that fails, and deliveries that follow from the
	// command are pulled behind it. It may be nil.
	Done func(Outcome) `json:"-"`

	pieces   []json.RawMessage // of an event, as it is published: more than one where it is too large for one delta
	anywhere bool              // it is the same command at whatever edge it is done again
	failed   func()            // is called before Told where what is sent is refused later; may be nil
}

// done gives an answer its place before the deliveries that follow from the command.
func (c *Command) done(out Outcome) {
	if c.Done != nil {
		c.Done(out)
	}
}

// Outcome is what became of a command.
type Outcome struct {
	Seq    uint64        `json:"seq,omitempty"`   // where it is stored; 0 for what stores nothing
	Event  string        `json:"event,omitempty"` // id of the event that was opened
	Joined spaces.Joined `json:"joined,omitzero"`
}

// commanded is an edge's answer to another one that asked it to do a command.
type commanded struct {
	Outcome
	Elsewhere  bool          `json:"elsewhere,omitempty"` // no such session is here, or no more: nothing was done
	Code       agora.Code    `json:"code,omitempty"`
	Message    string        `json:"message,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
}

func (r *commanded) err() error {
	if r.Code == "" {
		return nil
	}
	return &agora.Error{Code: r.Code, Message: r.Message, RetryAfter: r.RetryAfter}
}

// errUnknownVerb is the answer to a command of an edge that knows more verbs.
var errUnknownVerb = agora.Errorf(agora.InvalidRequest, "an edge of another version asked for this")
