package ws

import (
	"sync"
	"sync/atomic"
)

// writers run the writers of all connections. One that has ended waits a while for the next connection with something
// to write: its stack has grown already, which would else be done anew, by copying, for each chunk that comes alone.
type writers struct {
	work *sync.WaitGroup // waits for every writer
	next chan *conn      // to one that waits
	over chan struct{}   // closed when none waits any more
	idle atomic.Int32    // how many wait
}

// maxIdle is how many wait at most: about as many as run at a time while agents have little to read.
const maxIdle = 8

func (w *writers) init(work *sync.WaitGroup) {
	w.work, w.next, w.over = work, make(chan *conn), make(chan struct{})
}

// start has a writer write for c. It does not block.
func (w *writers) start(c *conn) {
	select {
	case w.next <- c:
	default:
		w.work.Go(func() { w.run(c) })
	}
}

// run writes for c, and then for whoever else has something.
func (w *writers) run(c *conn) {
	for c != nil {
		c.write()
		c = w.wait()
	}
}

// wait returns the next connection with something to write; nil when enough others wait, or the end has come.
func (w *writers) wait() *conn {
	defer w.idle.Add(-1)
	if w.idle.Add(1) > maxIdle {
		return nil
	}
	select {
	case c := <-w.next:
		return c
	case <-w.over:
		return nil
	}
}

// end lets those that wait end. It is called once.
func (w *writers) end() { close(w.over) }
