package loadgen

import (
	"context"
	"errors"
	"time"
)

// System is what a load is put on: the edges of a cluster, or what they are compared with.
type System interface {
	// Servers returns how many servers there are that agents connect to.
	Servers() int
	// Dial connects an agent, which has a role, to one of them, counted from 0. ctx bounds only that.
	Dial(ctx context.Context, r Role, id string, server int) (Agent, error)
	// Resume connects an agent again whose Receive has returned, and continues after what that handed on last;
	// ErrNone where no agent can.
	Resume(ctx context.Context, a Agent, server int) (Agent, error)
}

// Role is what an agent does in a load: some systems have several ways to connect. It is part of the agent's id.
type Role string

// The roles.
const (
	Sends    Role = "s"
	Receives Role = "r"
	Returns  Role = "b" // receives, is cut off and resumes
	Member   Role = "m" // of a space
	Idles    Role = "i" // says and hears nothing
)

// Agent is the connection of an agent to a system. Any goroutine may call Send, whose frames don't mix. Close and Cut
// have what blocks return.
type Agent interface {
	// Open makes ready to send. A space, whose member the agent becomes, is opened before Receive is called.
	// ErrNone says that the system has no such thing.
	Open(ctx context.Context, w Way) (Line, error)
	// Receive hands on what arrives, and returns when the connection has ended.
	Receive(r Receiver) error
	// Send writes a frame at once, and alone.
	Send(frame []byte) error
	// SetWriteDeadline bounds Send.
	SetWriteDeadline(t time.Time) error
	// Cut ends the connection without a word: the session stays where there is such a thing.
	Cut() error
	// Close says goodbye.
	Close() error
}

// Way is what an agent is to send on.
type Way struct {
	Kind    string // Stream, OneShot or FanOut
	To      string // an agent; a space for FanOut
	Line    int    // what stamps on it say
	Text    []byte // what each message says: its [Blank] becomes a stamp
	Receipt bool   // chunks of the stream, which is open already, ask for receipts from now on
}

// Line makes the frames of a way. One goroutine at a time uses it.
type Line interface {
	// Frame returns the frame that carries a stamp. It is good until the next call.
	Frame(s Stamp) []byte
}

// Receiver is told what an agent receives, by the goroutine that called Receive. at is when it came, in Ticks.
type Receiver interface {
	Arrived(s Stamp, at int64)   // a chunk, message or event
	Receipted(s Stamp, at int64) // the system has stored a message, or answers for it otherwise
	Refused(r Refusal)
	Gap() // the system says that it has left something out
}

// Refusal is an error that a system tells an agent.
type Refusal struct {
	Code, Message string
	Of            *Stamp        // the message that it is about; nil for none
	Broken        bool          // nothing can be sent on Line any more
	Line          int           // where it is Broken
	After         time.Duration // when trying again makes sense
}

// ErrNone says that a system has nothing of the kind.
var ErrNone = errors.New("there is no such thing in this system")

// Silent is a Receiver that minds nothing.
type Silent struct{}

// Arrived implements Receiver.
func (Silent) Arrived(Stamp, int64) {}

// Receipted implements Receiver.
func (Silent) Receipted(Stamp, int64) {}

// Refused implements Receiver.
func (Silent) Refused(Refusal) {}

// Gap implements Receiver.
func (Silent) Gap() {}
