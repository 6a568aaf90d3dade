package broker

import (
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// inboxReading is where Next stands.
type inboxReading struct {
	state   readState
	quiet   bool           // presence knows that nothing was sent since the inbox was complete
	doubts  int16          // how often in a row the leader knew less than a live record told
	since   time.Time      // while no record was read: those stored from then on
	after   uint64         // position where the inbox began: nothing at or below it is returned
	passed  uint64         // position of the last part of the last record that was looked at: nothing up to it is missing
	short   int64          // ticks since when the leader's log ends before what was read here; 0 when it does not
	stamp   int64          // when the first record of what Next returned last was stored, Unix nanoseconds; 0 for nothing
	records *record.Reader // nil until a record has come; it knows the names that the next one most often repeats
	scratch *readScratch   // what reading takes; nil until Next has something to read, and again once there is nothing
}

// readState is what Next does next, where nothing is queued and the inbox lags.
type readState uint8

const (
	readTells     readState = iota // tells a gap: the listener named a position that is none of the address's
	readAsksEmpty                  // asks the leader whether the mailbox, of which nothing is known, is empty
	readAsksFirst                  // asks the leader whether the listener's position is the end of the log
	readBegins                     // reads the log from the listener's position on, whose record it may have in part
	readAsksEnd                    // asks the leader whether what was read, which was all that a replica had, is all
	readContinues                  // reads the log from the record that was read last
	readStates
)

// readEvent is what comes of that.
type readEvent uint8

const (
	readTold    readEvent = iota // the gap is told
	readAsked                    // the leader is asked, and the log is to be read unless it has no more
	readMoves                    // a piece of the log was read, or the leader has no more, or it was made again
	readDrained                  // a piece was read that is all that a replica has
	readEvents
)

// readNext is the course of a reading: what each event makes of it.
var readNext = [readStates][readEvents]readState{
	//               told           asked          moves          drained
	readTells:     {readAsksFirst, readTells, readTells, readTells},
	readAsksEmpty: {readAsksEmpty, readBegins, readContinues, readAsksEnd},
	readAsksFirst: {readAsksFirst, readBegins, readContinues, readAsksEnd},
	readBegins:    {readBegins, readBegins, readContinues, readAsksEnd},
	readAsksEnd:   {readAsksEnd, readContinues, readContinues, readAsksEnd},
	readContinues: {readContinues, readContinues, readContinues, readAsksEnd},
}

func (s readState) String() string {
	return [...]string{"tells", "asks empty", "asks first", "begins", "asks end", "continues"}[s]
}

// asks reports whether the leader is asked how far the log goes, before it is read.
func (s readState) asks() bool { return s == readAsksFirst || s == readAsksEnd }

// fresh reports whether nothing was read yet: the listener alone says how far it has come.
func (s readState) fresh() bool { return s <= readBegins }

// firstRead returns what an inbox does first.
func (f From) firstRead() readState {
	switch {
	case f.Lost:
		return readTells
	case f == From{}:
		return readAsksEmpty
	case f.After > 0:
		return readAsksFirst
	}
	return readBegins
}

func (r *inboxReading) hears(e readEvent) { r.state = readNext[r.state][e] }

// readScratch is what an inbox needs only while it has something to read. Most inboxes are busy now and then, and take
// one for each answer. The goroutine that calls Next owns it.
type readScratch struct {
	batch []liveRecord    // what take has taken from the queue
	msgs  []agora.Message // what Next returned last
}

// scratchPool are those that no inbox needs now.
var scratchPool = sync.Pool{New: func() any { return new(readScratch) }}

// keepScratch is how many messages a scratch has room for at most that is kept for later.
const keepScratch = 4 * record.MaxParts

// release lets go of the scratch, which holds nothing.
func (r *inboxReading) release() {
	d := r.scratch
	r.scratch = nil
	if r.records != nil {
		r.records.Release()
	}
	if cap(d.msgs) <= keepScratch && cap(d.batch) <= keepScratch {
		scratchPool.Put(d)
	}
}
