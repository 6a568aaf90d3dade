package broker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// recordBytes is where gathering stops: a record holds up the others that share its edge's connection, by milliseconds where it is larger.
const recordBytes = 32 << 10

// inflightRecord is a record on its way, and what is to be answered when its fate is known.
type inflightRecord struct {
	msg         nats.Msg
	id          string
	record      record.Builder
	items       []item          // in the order of their Puts
	parts       []agora.Message // what the record holds: those of the items that are stored, and aborts before them
	validAt     time.Time
	first       time.Time     // when it was sent first
	last        time.Time     // when it was sent last
	since       int64         // ticks when its oldest item was put into the lane
	tries       int           // how often it was sent
	refused     int           // how often the log said that it is full
	beingStored int           // how often the log said that it is being stored
	aborts      bool          // it holds aborts
	asking      bool          // whether it can be sent again safely is being asked
	counter     *atomic.Int64 // counts it among the records on their way; nil before it is one
	open        bool          // the ledger reckons with its parts, and could still take them back
}

// item is a part and what becomes of it once the record is stored.
type item struct {
	entry
	v    ledger.Verdict
	part int // its index in the record, if it is stored
}

var inflightPool = sync.Pool{New: func() any {
	f := &inflightRecord{msg: nats.Msg{Header: nats.Header{jslog.MessageID: make([]string, 1)}}}
	if guard.Fences {
		f.msg.Header[jslog.ExpectedLast], f.msg.Header[jslog.ExpectedSubject] = make([]string, 1), make([]string, 1)
	}
	return f
}}

// keepBytes is the largest buffer kept for later flights.
const keepBytes = 256 << 10

// release gives the record back. Nothing of it may be used after.
func (f *inflightRecord) release() {
	if f.counter != nil {
		f.counter.Add(-1)
	}
	clear(f.items)
	clear(f.parts)
	f.record.Reset(keepBytes)
	h := f.msg.Header
	*f = inflightRecord{msg: nats.Msg{Header: h}, record: f.record, items: f.items[:0], parts: f.parts[:0]}
	inflightPool.Put(f)
}

// add puts a part into the record.
func (f *inflightRecord) add(m agora.Message) {
	f.record.Add(&m)
	f.parts = append(f.parts, m)
}

// pass says that a number was used up that was refused for the moment while the record is of unknown fate: where
// that is not stored, the number is not waited for.
func (f *inflightRecord) pass(n uint64) {
	for i := range f.items {
		if it := &f.items[i]; it.toldOff() && it.m.N == n {
			it.m.N = 0
		}
	}
}

// holds reports whether a message with a number waits for the fate of the record.
func (f *inflightRecord) holds(n uint64) bool {
	return slices.ContainsFunc(f.items, func(it item) bool { return it.m.N == n && !it.toldOff() })
}

// toldOff reports whether the item was answered with UNAVAILABLE before the fate of its record is known.
func (it *item) toldOff() bool { return it.done == nil }

// stores reports whether it holds anything but the aborts that are owed.
func (f *inflightRecord) stores() bool {
	return slices.ContainsFunc(f.items, func(it item) bool { return it.v.Store })
}

// abort puts an abort of a stream into the record.
func (f *inflightRecord) abort(l *ledger.Ledger, stream string, epoch uint64) {
	f.aborts = true
	f.add(l.Abort(stream, epoch))
}
