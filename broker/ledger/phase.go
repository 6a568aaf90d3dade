package ledger

import "github.com/agora-relay/agora"

// phase is how far a stream has come.
type phase uint8

const (
	unknown   phase = iota // not known: never begun, or forgotten
	unstarted              // its start was refused for the moment, without a number, or has got its abort: it may come again
	doubted                // its start was refused, though it may be stored: a receiver that has it is owed an abort
	running                // open
	broken                 // open to its receiver, but a part could not be stored: to be aborted
	over                   // ended by its sender
	aborted                // ended by the cluster
	phases
)

// event is what a stream meets.
type event uint8

const (
	startStored  event = iota // a start, which makes another stream of it
	partStored                // a part that neither starts nor ends it
	endStored                 // its sender's end, or cancel
	abortStored               // the cluster's end
	startRefused              // its start is not stored, and may come again
	startDoubted              // its start was refused, though it may be stored
	partLost                  // a part of it is not stored, and nothing makes up for it
	events
)

// nextPhase is the life of a stream: what each event makes of it.
var nextPhase = [phases][events]phase{
	//         start    part       end   abort      refused    doubted  lost
	unknown:   {running, running, over, aborted, unstarted, doubted, unknown}, // the log may have lost what stood before
	unstarted: {running, unstarted, over, unstarted, unstarted, doubted, unstarted},
	doubted:   {running, doubted, over, unstarted, doubted, doubted, doubted}, // its receiver has an end of the start, which may come again
	running:   {running, running, over, aborted, running, running, broken},
	broken:    {running, broken, over, aborted, broken, broken, broken},
	over:      {running, over, over, aborted, over, doubted, over},
	aborted:   {running, aborted, over, aborted, aborted, doubted, aborted},
}

func (p phase) String() string {
	return [...]string{"unknown", "unstarted", "doubted", "running", "broken", "over", "aborted"}[p]
}

// isOpen reports whether the receiver has a start and no end, as far as is known.
func (p phase) isOpen() bool { return p == running || p.owesAbort() }

// owesAbort reports whether the receiver may wait in vain for more of the stream.
func (p phase) owesAbort() bool { return p == broken || p == doubted }

// ended reports whether the stream is known and not open: it is forgotten one day.
func (p phase) ended() bool { return p == over || p == aborted || p == unstarted }

// storedAs returns the event that a stored part is to its stream.
func storedAs(p agora.Part) event {
	switch p {
	case agora.Start:
		return startStored
	case agora.End, agora.Cancel:
		return endStored
	case agora.Abort:
		return abortStored
	}
	return partStored
}

// evidence is what the log, when it was read, said of a stream.
type evidence uint8

const (
	unread evidence = iota // nothing was read of it: it began here, or presence alone knows it
	read                   // all of its parts up to the last one that was read
	echoed                 // as read, but that one may have been stored before, and what follows it as well
	torn                   // records behind those that were read may be gone, and with them parts of it
)

func (e evidence) String() string { return [...]string{"unread", "read", "echoed", "torn"}[e] }
