package ws

import (
	"runtime"
	"sync"
)

// writers write for all connections of a door: a few goroutines, which go round among those that have something to write. An
// event that wakes a thousand of them needs no thousand goroutines, each of which would have its stack grow; and what
// comes up for one of them meanwhile goes out with the rest of it in its next round. A writer that
// has to wait for a connection, as it takes nothing or has to read the log, counts no more: another one takes its place.
type writers struct {
	work *sync.WaitGroup // waits for every writer
	most int             // how many count at a time

	mu     sync.Mutex // guards the fields below
	due    []*conn    // from first on: those with something to write that no writer is at
	first  int
	atWork int        // writers that count and are at a connection
	idle   int        // writers that count and wait for one
	call   *sync.Cond // on mu, of those that are idle
	called int        // how many of these are to go on: they count as at work
	over   bool       // nobody is to wait any more
}

// writersEach is how many writers count for each processor. Where the machine is full each goroutine gets its share of it: with 2
// for each processor, what had come from the log waited for a second behind those that read from agents and from it.
const writersEach = 16

func (w *writers) init(work *sync.WaitGroup) {
	w.work, w.most = work, writersEach*runtime.GOMAXPROCS(0)
	w.call = sync.NewCond(&w.mu)
}

// start has a writer write for c. It does not block.
func (w *writers) start(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enqueue(c)
	w.staff()
}

// keepDue is for how many connections there stays room while none is due.
const keepDue = 4096

// enqueue puts c behind those that are due. mu is held.
func (w *writers) enqueue(c *conn) {
	if len(w.due) == cap(w.due) && w.first > len(w.due)/2 {
		n := copy(w.due, w.due[w.first:])
		clear(w.due[n:])
		w.due, w.first = w.due[:n], 0
	}
	w.due = append(w.due, c)
}

// dequeue returns who has been due for longest, nil where nobody is. mu is held.
func (w *writers) dequeue() *conn {
	if w.first == len(w.due) {
		return nil
	}
	c := w.due[w.first]
	w.due[w.first] = nil
	if w.first++; w.first == len(w.due) {
		w.due, w.first = w.due[:0], 0
		if cap(w.due) > keepDue {
			w.due = nil
		}
	}
	return c
}

// staff has one more writer work, if there may be one more. mu is held.
func (w *writers) staff() {
	switch {
	case w.idle > 0:
		w.idle--
		w.atWork++
		w.called++
		w.call.Signal()
	case w.atWork < w.most:
		w.atWork++
		w.work.Go(w.run)
	}
}

// end lets those that wait end.
func (w *writers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.called += w.idle
	w.atWork += w.idle
	w.idle = 0
	w.call.Broadcast()
}

// run writes for one connection after the other.
func (w *writers) run() {
	me := &writer{all: w, counts: true, attempt: newAttempt()}
	me.waits = me.leave
	for c := me.next(); c != nil; c = me.next() {
		if c.out.write(me) {
			w.mu.Lock()
			w.enqueue(c)
			w.mu.Unlock()
		}
	}
}

// writer is one of the writers.
type writer struct {
	all     *writers
	counts  bool
	attempt *attempt
	waits   func() // leave: to be called before it waits
}

// next returns the connection to write for; nil where enough others count, or the end has come.
func (me *writer) next() *conn {
	w := me.all
	w.mu.Lock()
	defer w.mu.Unlock()
	if !me.counts {
		if w.atWork+w.idle >= w.most {
			return nil
		}
		me.counts = true
		w.atWork++
	}
	for {
		if c := w.dequeue(); c != nil {
			return c
		}
		w.atWork--
		if w.over {
			return nil
		}
		w.idle++
		for w.called == 0 {
			w.call.Wait()
		}
		w.called--
	}
}

// leave has another writer take the place of this one, which is about to wait.
func (me *writer) leave() {
	if !me.counts {
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
