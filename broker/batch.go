package broker

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// recordBytes is where a record is full: a larger one would hold up, by milliseconds, all that shares its edge's
// connection.
const recordBytes = 32 << 10

// batch is messages of a lane that share a record. They gather while the record before them is in flight. Then the lane
// makes a record of the batch, publishes it, answers each item and tells the senders. The lane's lock guards a batch
// until it is answered; the goroutine that tells the senders releases it.
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
	done    func(Result)   // nil once its sender has heard UNAVAILABLE, while the fate of its record is unknown
	size    int            // of the body that it came with
	room    int            // what it takes in a record, at most
	lost    bool           // refused already; its answer waits for those before it
	verdict ledger.Verdict // once it was judged
	part    int            // its index in the record, if it is stored
}

// toldOff reports whether the sender has heard UNAVAILABLE before the fate of the item's record is known.
func (it *item) toldOff() bool { return it.done == nil }

// result returns the sender's answer, once the item is judged and its record stands at seq.
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

// batchPool keeps unused batches for all lanes: thousands of lanes may have gathered much once, and nothing since.
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
	items, made := f.items[:0], f.record
	if cap(items) > keepItems {
		items = nil
	}
	if len(made.Bytes()) > keepBytes {
		made = record.Builder{}
	}
	*f = batch{items: items, msg: nats.Msg{Header: f.msg.Header}, record: made}
	batchPool.Put(f)
}

// abort puts an abort of a stream into the record.
func (f *batch) abort(l *ledger.Ledger, stream string, epoch uint64) {
	m := l.Abort(stream, epoch)
	f.record.Add(&m)
	f.aborts = append(f.aborts, stream)
}

// split keeps the first n items and returns a batch of the others.
func (f *batch) split(n int) *batch {
	rest := newBatch()
	rest.items = append(rest.items, f.items[n:]...)
	clear(f.items[n:])
	f.items = f.items[:n]
	return rest
}

// has reports whether one holds for an item. A nil batch has none.
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

// pass skips number n, which was refused for the moment and then used up: if the record turns out not to be stored, the
// lane does not wait for the number.
func (f *batch) pass(n uint64) {
	for i := range f.items {
		if it := &f.items[i]; it.toldOff() && it.m.N == n {
			it.m.N = 0
		}
	}
}

// batches is a list of batches, in the order of their Puts. The zero value is empty.
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

// has reports whether one holds for an item.
func (bs *batches) has(one func(*item) bool) bool {
	for f := bs.first; f != nil; f = f.next {
		if f.has(one) {
			return true
		}
	}
	return false
}

// completions are the answered batches of a lane whose senders are still to be told. Its lane's lock guards them.
type completions struct {
	batches
	telling bool            // a goroutine tells senders
	posted  bool            // one will
	waiters []chan struct{} // closed when the lane is idle, or never will be
}

// tellLater has another goroutine call tell, if there is an answer to give. The lock is held.
func (l *Lane) tellLater() {
	if c := &l.completions; c.first != nil && !c.telling && !c.posted {
		c.posted = true
		l.b.callbacks.post(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.tell()
		})
	}
}

// tell gives the senders their answers, in order; one goroutine at a time does. The lock is held, but not while it
// calls a sender.
func (l *Lane) tell() {
	c := &l.completions
	c.posted = false
	for c.first != nil && !c.telling {
		told := c.batches
		c.batches, c.telling = batches{}, true
		l.mu.Unlock()
		for f := told.pop(); f != nil; f = told.pop() {
			for i := range f.items {
				if it := &f.items[i]; !it.toldOff() {
					it.done(it.result(f.seq))
				}
			}
			f.release()
		}
		l.mu.Lock()
		c.telling = false
	}
	l.wakeWaiters()
}

// wakeWaiters ends all calls of unlockAndWait, if the lane is idle or never will be.
func (l *Lane) wakeWaiters() {
	if c := &l.completions; len(c.waiters) > 0 && (l.state.refuses() || l.failures.gaveUp || l.idle()) {
		for _, w := range c.waiters {
			close(w)
		}
		c.waiters = nil
	}
}

// unlockAndWait lets go of the lock, and returns once the lane may be idle, or never will be. It fails when ctx is
// over.
func (l *Lane) unlockAndWait(ctx context.Context) error {
	w := make(chan struct{})
	l.completions.waiters = append(l.completions.waiters, w)
	l.mu.Unlock()
	select {
	case <-w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
