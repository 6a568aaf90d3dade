package broker

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// recordBytes is where a record is full: it holds up the others that share its edge's connection, by milliseconds where it is larger.
const recordBytes = 32 << 10

// batch is messages of a lane that go together. They gather while the record before them is in flight; then the batch is made a record, is in flight, is
// answered, and its senders are told. Its lane's lock guards it until it is answered; whoever tells the senders releases it.
type batch struct {
	items []item // in the order of their Puts
	since int64  // ticks when the oldest item was put into the lane, or a little later
	next  *batch // behind this one

	// The record.
	seq         uint64 // where it is stored
	msg         nats.Msg
	id          string
	record      record.Builder
	aborts      []string // streams that it aborts
	stores      bool     // it holds more than aborts that are owed
	reserved    bool     // the ledger reckons with its parts, and could still take them back
	validAt     time.Time
	first       time.Time // when it was sent first
	last        time.Time // when it was sent last
	tries       int       // how often it was sent
	refused     int       // how often the log said that it is full
	beingStored int       // how often the log said that it is being stored
	asking      bool      // whether it can be sent again safely is being asked
}

// item is a message, and what becomes of it.
type item struct {
	m       agora.Message
	done    func(Result)   // nil once its sender was told UNAVAILABLE, while the fate of its record is not known
	size    int            // of the body that it came with
	room    int            // what it takes in a record, at most
	lost    bool           // refused already, but in its turn: those before it are not answered yet
	verdict ledger.Verdict // once it was judged
	part    int            // its index in the record, if it is stored
}

// toldOff reports whether the sender was told UNAVAILABLE before the fate of the item's record is known.
func (it *item) toldOff() bool { return it.done == nil }

// result returns what the sender is told of an item that is judged, in a record stored at seq.
func (it *item) result(seq uint64) Result {
	r := Result{Stream: it.m.Stream, N: it.m.N, Size: it.size}
	switch v := &it.verdict; {
	case v.Err != nil:
		r.Err = v.Err
	case v.Again:
		r.Again, r.Stream, r.Seq = true, v.At.Stream, v.At.Position(seq)
	default:
		r.Seq = seq<<agora.SeqShift | uint64(it.part)
	}
	return r
}

// batchPool has the batches that no lane needs now: thousands of lanes may have gathered much once, and nothing since, so none keeps what that took.
var batchPool = sync.Pool{New: func() any {
	f := &batch{msg: nats.Msg{Header: nats.Header{jslog.MessageID: make([]string, 1)}}}
	if guard.Fences {
		f.msg.Header[jslog.ExpectedLast], f.msg.Header[jslog.ExpectedSubject] = make([]string, 1), make([]string, 1)
	}
	return f
}}

// What is kept at most for later batches.
const (
	keepBytes = 256 << 10           // of a record's memory
	keepItems = 4 * record.MaxParts // room for items
)

// newBatch returns an empty batch.
func newBatch() *batch {
	f := batchPool.Get().(*batch)
	f.since = agora.Ticks()
	return f
}

// release gives the batch back. Nothing of it may be used after.
func (f *batch) release() {
	clear(f.items)
	if f.items = f.items[:0]; cap(f.items) > keepItems {
		f.items = nil
	}
	f.forgetRecord()
	batchPool.Put(f)
}

// forgetRecord forgets the record that was made of the batch.
func (f *batch) forgetRecord() {
	made := f.record
	if len(made.Bytes()) > keepBytes {
		made = record.Builder{}
	}
	*f = batch{items: f.items, since: f.since, msg: nats.Msg{Header: f.msg.Header}, record: made}
}

// abort puts an abort of a stream into the record.
func (f *batch) abort(l *ledger.Ledger, stream string, epoch uint64) {
	m := l.Abort(stream, epoch)
	f.record.Add(&m)
	f.aborts = append(f.aborts, stream)
}

// split leaves the first n items in the batch and returns another with those behind.
func (f *batch) split(n int) *batch {
	rest := newBatch()
	rest.items = append(rest.items, f.items[n:]...)
	clear(f.items[n:])
	f.items = f.items[:n]
	return rest
}

// has reports whether an item is one that is asked for. A nil batch has none.
func (f *batch) has(one func(*item) bool) bool {
	if f != nil {
		for i := range f.items {
			if one(&f.items[i]) {
				return true
			}
		}
	}
	return false
}

// pass says that a number was used up that was refused for the moment while the record is of unknown fate: where
// that is not stored, the number is not waited for.
func (f *batch) pass(n uint64) {
	for i := range f.items {
		if it := &f.items[i]; it.toldOff() && it.m.N == n {
			it.m.N = 0
		}
	}
}

// batches are batches in the order of their Puts. The zero value is none.
type batches struct{ first, last *batch }

// push adds a batch behind the others.
func (bs *batches) push(f *batch) {
	if bs.first == nil {
		bs.first = f
	} else {
		bs.last.next = f
	}
	bs.last = f
}

// pushFront adds a batch before the others.
func (bs *batches) pushFront(f *batch) {
	if f.next = bs.first; bs.first == nil {
		bs.last = f
	}
	bs.first = f
}

// pop takes the first one out; nil when there is none.
func (bs *batches) pop() *batch {
	f := bs.first
	if f != nil {
		bs.first, f.next = f.next, nil
	}
	return f
}

// moveFirst moves the items of the first batch behind those of another. It reports whether there was one.
func (bs *batches) moveFirst(to *batch) bool {
	f := bs.pop()
	if f == nil {
		return false
	}
	to.items = append(to.items, f.items...)
	f.release()
	return true
}

// has reports whether an item is one that is asked for.
func (bs *batches) has(one func(*item) bool) bool {
	for f := bs.first; f != nil; f = f.next {
		if f.has(one) {
			return true
		}
	}
	return false
}

// completions are the batches of a lane that are answered, and whose senders are not told yet; and whoever waits for the lane to be idle. Its lane's
// lock guards them.
type completions struct {
	batches
	telling bool // a goroutine is
	posted  bool // one will
	waiters []chan struct{}
}

// wait returns what is closed when the lane is idle, or never will be.
func (c *completions) wait() <-chan struct{} {
	w := make(chan struct{})
	c.waiters = append(c.waiters, w)
	return w
}
