package broker

// inboxState is where an inbox gets its messages from.
type inboxState uint8

const (
	inboxLags   inboxState = iota // the log must be read; what comes live is dropped
	inboxStages                   // the log must be read, and its end is near: what comes live is staged, to be joined to what is read
	inboxLive                     // live records are queued
	inboxIdle                     // live records are queued, and Next has said that there is nothing: the next thing wakes
	inboxClosed                   // nothing more comes
	inboxStates
)

// inboxEvent is what happens to an inbox.
type inboxEvent uint8

const (
	inboxQueues  inboxEvent = iota // a live record is queued
	inboxMisses                    // something is stored that it has not got, or may be
	inboxDrains                    // Next has found nothing queued
	inboxNears                     // the log was read up to its end, or nearly
	inboxCatches                   // it has everything that the stream's leader has
	inboxCloses                    // it is closed
	inboxEvents
)

// inboxNext is the life of an inbox: what each event makes of it.
var inboxNext = [inboxStates][inboxEvents]inboxState{
	//           queues     misses       drains     nears       catches up   closes
	inboxLags:   {inboxLags, inboxLags, inboxLags, inboxStages, inboxLive, inboxClosed},
	inboxStages: {inboxStages, inboxStages, inboxStages, inboxStages, inboxLive, inboxClosed},
	inboxLive:   {inboxLive, inboxLags, inboxIdle, inboxLive, inboxLive, inboxClosed},
	inboxIdle:   {inboxLive, inboxLags, inboxIdle, inboxIdle, inboxIdle, inboxClosed},
	inboxClosed: {inboxClosed, inboxClosed, inboxClosed, inboxClosed, inboxClosed, inboxClosed},
}

func (s inboxState) String() string {
	return [...]string{"lags", "stages", "live", "idle", "closed"}[s]
}

// lags reports whether the log must be read.
func (s inboxState) lags() bool { return s == inboxLags || s == inboxStages }

// hears moves the inbox on by an event, and reports whether its reader is to be woken, who was told that there is nothing. The lock is held.
func (i *Inbox) hears(e inboxEvent) (wakes bool) {
	was := i.state
	i.state = inboxNext[was][e]
	return was == inboxIdle && (i.state == inboxLive || i.state == inboxLags)
}

// inboxBegin is what an inbox does before it gives what follows its beginning.
type inboxBegin uint8

const (
	inboxBegun   inboxBegin = iota // nothing more
	inboxUnknown                   // nothing is known of the mailbox, which may well be empty: the leader is asked before the log is read
	inboxForeign                   // the listener named a position that is none of the address's: a gap is told
)

func (b inboxBegin) String() string { return [...]string{"begun", "unknown", "foreign"}[b] }

// begins returns what an inbox does first.
func (f From) begins() inboxBegin {
	switch {
	case f.Lost:
		return inboxForeign
	case f == From{}:
		return inboxUnknown
	}
	return inboxBegun
}
