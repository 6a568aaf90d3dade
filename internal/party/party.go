// Package party is the suite that every door passes: scenarios in words of the core, each played between a sender
// behind one door and a receiver behind another. A door takes part by an adapter, its [Door]; frames of its dialect are
// vectors of its own.
package party

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
)

// Door is the adapter of a door: it enters agents in the door's dialect.
type Door struct {
	Name    string // in the names of tests
	Dialect string // as the directory names it
	Can     Trait  // what its dialect can, and what it keeps up; what needs more is left out, and listed in testdata/left_out.txt
	TooMuch int    // bytes of a payload that it does not take, where it is [Bounded]

	// Open opens the door at one edge; nil where every edge of agoratest has it. Doors whose Opens is the same are one,
	// and opened once.
	Open  func(agoratest.Entry) (agoratest.Opened, error)
	Opens string // the door's Name if empty
	// Enter enters an agent; where the dialect does not know that, it only says who will ask. An *agora.Error is the
	// edge's refusal. Everything that it starts ends with seat.T.
	Enter func(ctx context.Context, seat Seat) (Party, error)
}

// Seat is where an agent enters, and as whom.
type Seat struct {
	T       testing.TB         // the scenario
	Cluster *agoratest.Cluster //
	Edge    int                // number of the edge
	ID      agora.AgentID      //
	Token   string             // credentials; empty for none
	Skills  []agora.Skill      // of its card
}

// Party is one agent that has entered by its dialect. Say is called by one goroutine at a time, Hear by another one,
// and the rest by that of the scenario while nobody says anything.
type Party interface {
	// Say says a word, and returns when the edge has taken it or dropped it: an *agora.Error is its refusal. [ErrGone]
	// says that the connection went before that was known: then the same word is said again once the party has
	// returned, before any other, and counts once.
	Say(context.Context, Word) error
	// Hear returns the next word that came. ErrGone means that nothing more comes by this connection; what came by it
	// was heard before.
	Hear(context.Context) (Word, error)

	// The others are not called where the door lacks the trait: an adapter may embed [Unable] for them.

	Leave()                                                   // says goodbye; the party is not used any more: [Enters]
	Drop()                                                    // loses the connection without a word: [Enters]
	Return(ctx context.Context, edge int) error               // comes back after a loss, at any edge, and continues: [Waits], [Moves]
	Stall(bool)                                               // takes nothing from its connection any more, or continues: [Stalls]
	Join(ctx context.Context, space string) error             // enters a space: [Rooms]
	Look(context.Context, agora.AgentID) (agora.Agent, error) // finds an agent in the directory, else AGENT_NOT_FOUND: [Looks]
}

// Unable is the methods of a Party that its door can't.
type Unable struct{}

var errUnable = errors.New("party: the door can't do this")

// Leave does nothing.
func (Unable) Leave() {}

// Drop does nothing.
func (Unable) Drop() {}

// Return returns an error.
func (Unable) Return(context.Context, int) error { return errUnable }

// Stall does nothing.
func (Unable) Stall(bool) {}

// Join returns an error.
func (Unable) Join(context.Context, string) error { return errUnable }

// Look returns an error.
func (Unable) Look(context.Context, agora.AgentID) (agora.Agent, error) {
	return agora.Agent{}, errUnable
}

// ErrGone means that a party's connection is gone.
var ErrGone = errors.New("party: the connection is gone")

// Word is one thing that an agent says or hears. Names are each party's own: a stream or a request may have another one
// at its other end, and is answered, cancelled or followed there under the name that was heard.
type Word struct {
	Kind agora.Kind    // Request, Reply or Event; of a Cancel or Abort that is heard it says nothing
	Part agora.Part    // Abort is heard alone: a stream or request was given up, on either side, and Code says why
	Peer agora.AgentID // who it is said to, or comes from; of an Abort the other side
	As   agora.AgentID // who the party pretends to be, where its dialect has a place for that; empty for nobody

	Space    string        // of an Event, which is Whole
	Stream   string        // of what is not Whole
	Request  string        // what its answer names; of a Reply the request that it answers; empty for neither
	Body     []byte        // of a Chunk text, else JSON; nil for none. Where there is a Request it is an object, into which the dialect may put names
	Deadline time.Duration // of what begins with one: how long it may take
	Code     agora.Code    // of an Abort
}
