package deliver

import (
	"log/slog"
	"runtime"
	"sync"
	"time"
)

// Writers write for all outboxes of a door: a few goroutines, which go round among those that have something to write.
// An event that wakes a thousand connections needs no thousand goroutines, each of which would have its stack grow; and
// what comes up for one of them meanwhile goes out with the rest of it in its next round. A writer that has to wait for
// a connection, as it takes nothing or has to read the log, counts no more: another one takes its place. The exported
// fields are set before Init.
type Writers struct {
	Answers int             // bytes queued beyond which Leave waits
	Linger  time.Duration   // how long a closing connection may still take what is queued
	Work    *sync.WaitGroup // waits for every writer
	Log     *slog.Logger

	most int // how many count at a time

	mu     sync.Mutex // guards the fields below
	due    []*Outbox  // from first on: those with something to write that no writer is at
	first  int
	atWork int        // writers that count and are at an outbox
	idle   int        // writers that count and wait for one
	wake   *sync.Cond // on mu, of those that are idle
	woken  int        // how many of these are to go on: they count as at work
	over   bool       // nobody is to wait any more
}

// writersEach is how many writers count for each processor. Where the machine is full each goroutine gets its share of
// it: with 2 for each processor, what had come from the log waited for a second behind those that read from agents and
// from it.
const writersEach = 16

// Init makes the writers ready.
func (w *Writers) Init() {
	w.most = writersEach * runtime.GOMAXPROCS(0)
	w.wake = sync.NewCond(&w.mu)
}

// call has a writer come to o. It does not block.
func (w *Writers) call(o *Outbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enqueue(o)
	w.staff()
}

// keepDue is for how many outboxes there stays room while none is due.
const keepDue = 4096

// enqueue puts o behind those that are due. mu is held.
func (w *Writers) enqueue(o *Outbox) {
	if len(w.due) == cap(w.due) && w.first > len(w.due)/2 {
		n := copy(w.due, w.due[w.first:])
		clear(w.due[n:])
		w.due, w.first = w.due[:n], 0
	}
	w.due = append(w.due, o)
}

// dequeue returns the one that has been due for longest, nil where none is. mu is held.
func (w *Writers) dequeue() *Outbox {
	if w.first == len(w.due) {
		return nil
	}
	o := w.due[w.first]
	w.due[w.first] = nil
	if w.first++; w.first == len(w.due) {
		w.due, w.first = w.due[:0], 0
		if cap(w.due) > keepDue {
			w.due = nil
		}
	}
	return o
}

// staff has one more writer work, if there may be one more. mu is held.
func (w *Writers) staff() {
	switch {
	case w.idle > 0:
		w.idle--
		w.atWork++
		w.woken++
		w.wake.Signal()
	case w.atWork < w.most:
		w.atWork++
		w.Work.Go(w.run)
	}
}

// End lets those that wait end, and those that work once they have nothing to do.
func (w *Writers) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.woken += w.idle
	w.atWork += w.idle
	w.idle = 0
	w.wake.Broadcast()
}

// run writes for one outbox after the other.
func (w *Writers) run() {
	me := &Writer{all: w, counts: true}
	me.reads = me.readsLog
	for o := me.next(nil); o != nil; {
		if o.write(me) {
			o = me.next(o)
		} else {
			o = me.next(nil)
		}
	}
}

// Writer is one of the writers.
type Writer struct {
	all    *Writers
	counts bool
	pulls  *Outbox // whose session it pulls
	reads  func()  // readsLog, made once
}

// readsLog is told by the session that is pulled before it waits.
func (me *Writer) readsLog() {
	me.Waits()
	me.pulls.pullWaits()
}

// next returns the outbox to write for, behind which comes the one that was left with more to write, if any; nil where
// enough others count, or the end has come.
func (me *Writer) next(left *Outbox) *Outbox {
	w := me.all
	w.mu.Lock()
	defer w.mu.Unlock()
	if left != nil {
		w.enqueue(left)
	}
	if !me.counts {
		if w.atWork+w.idle >= w.most {
			return nil
		}
		me.counts = true
		w.atWork++
	}
	for {
		if o := w.dequeue(); o != nil {
			return o
		}
		w.atWork--
		if w.over {
			return nil
		}
		w.idle++
		for w.woken == 0 {
			w.wake.Wait()
		}
		w.woken--
	}
}

// Waits has another writer take the place of this one, which is about to wait. A nil Writer stands for a caller that is
// none.
func (me *Writer) Waits() {
	if me == nil || !me.counts {
		return
	}
	me.counts = false
	w := me.all
	w.mu.Lock()
	defer w.mu.Unlock()
	w.atWork--
	if w.first < len(w.due) {
		w.staff()
	}
}
