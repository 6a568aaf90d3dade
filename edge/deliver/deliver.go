// Package deliver is the loop by which every door that has a mailbox writes to its connections: it pulls what the
// session has, has the door encode it, has it written, and tells the session so. What the door tells beside deliveries
// (answers, receipts, pings) goes through the same [Outbox], in the order in which it is appended.
//
// A few [Writers] write for all connections of a door, so a quiet connection has no writer, and one that takes nothing,
// or waits for the log, holds up none of the others.
package deliver

import "github.com/agora-relay/agora/edge"

// Line is a connection as its outbox sees it. Encode and Write are called by one writer at a time each, Kill by any
// goroutine.
type Line interface {
	// Encode appends deliveries in the door's form. Before it blocks it calls w.Waits.
	Encode(dst []byte, ds []edge.Delivery, w *Writer) []byte

	// Write writes all of b, and calls w.Waits before it waits for the peer to take some. Where w is nil it does not
	// wait, and returns how much the peer took at once.
	Write(b []byte, w *Writer) (taken int, err error)

	// Kill gives up a connection that takes nothing any more, what the system has queued for it included. The outbox is
	// locked: Kill does not block, and calls of the outbox GiveUp alone.
	Kill(why edge.Cause)

	// Ended is called once, when nothing is written any more and no verb runs. It may block, and calls w.Waits before;
	// w may be nil.
	Ended(w *Writer)
}

// stage is what the writers do for an outbox.
type stage uint8

const (
	quiet        stage = iota // nobody writes
	called                    // a writer is to come
	writes                    // it writes
	pulls                     // it waits within a pull, as long as the servers of the log may take to elect a leader
	pullsCalled               // … and another one is to come, to write beside it what needs no log
	pullsBeside               // … and that one writes
	pulledBeside              // the pull is over, and its writer waits until the one beside it has written
)

func (s stage) String() string {
	return [...]string{
		"quiet", "called", "writes", "pulls", "pulls, another one called", "pulls, another one writes", "pulled, another one writes",
	}[s]
}

// event is what moves an outbox from one stage to the next.
type event uint8

const (
	queued  event = iota // there is something to write
	comes                // a writer has come, perhaps late: another one has done what it was called for
	waits                // its pull begins to wait
	pulled               // its pull is over
	besides              // the writer beside the pull has ended
	goesOn               // a round is over, and there is more to write
	ends                 // there is nothing more to write, or it can't be written
	nEvents              // how many there are
)

// next is all that happens to the writing: the stage to which an event leads.
var next = [...][nEvents]stage{
	//             queued       comes         waits         pulled        besides       goesOn        ends
	quiet:        {called, quiet, quiet, quiet, quiet, quiet, quiet},
	called:       {called, writes, called, called, called, called, called},
	writes:       {writes, writes, pulls, writes, writes, called, quiet},
	pulls:        {pullsCalled, pulls, pulls, writes, pulls, pulls, pulls},
	pullsCalled:  {pullsCalled, pullsBeside, pullsCalled, writes, pullsCalled, pullsCalled, pullsCalled},
	pullsBeside:  {pullsBeside, pullsBeside, pullsBeside, pulledBeside, pulls, pullsBeside, pullsBeside},
	pulledBeside: {pulledBeside, pulledBeside, pulledBeside, pulledBeside, writes, pulledBeside, pulledBeside},
}
