package iat

import (
	"context"
	"sync"
)

// dispatcher calls functions: those of one key one after another, those of different keys at the same time, so many at
// most. Its methods may be called at the same time, and but for wait by the functions too.
type dispatcher struct {
	slots chan struct{} // one for each key that may run
	most  int           // bytes that may wait
	work  sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	queues map[string][]waiting
	bytes  int
	room   chan struct{} // holds one token when bytes went down
}

// waiting is a function that is to be called.
type waiting struct {
	size int
	call func()
}

// waitingBytes is what a function counts at least.
const waitingBytes = 1 << 10

func newDispatcher(cfg Config) *dispatcher {
	return &dispatcher{
		slots: make(chan struct{}, cfg.Handlers), most: cfg.MaxBuffered, queues: map[string][]waiting{}, room: make(chan struct{}, 1),
	}
}

// add has f called once what came before it of its key has returned. It blocks while too much waits, and returns false
// where ctx ends meanwhile. One goroutine calls it.
func (d *dispatcher) add(ctx context.Context, key string, size int, f func()) bool {
	size += waitingBytes
	for !d.put(key, waiting{size, f}) {
		select {
		case <-d.room:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// put queues a function, and returns false where there is no room for it.
func (d *dispatcher) put(key string, j waiting) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bytes > 0 && d.bytes+j.size > d.most {
		return false
	}
	d.bytes += j.size
	queue, runs := d.queues[key]
	d.queues[key] = append(queue, j)
	if !runs {
		d.work.Go(func() { d.run(key) })
	}
	return true
}

// run calls the functions of a key until there is none.
func (d *dispatcher) run(key string) {
	d.slots <- struct{}{}
	defer func() { <-d.slots }()
	for {
		j, ok := d.next(key)
		if !ok {
			return
		}
		j.call()
		d.release(j.size)
	}
}

// next returns the next function of a key; false where there is none, and nothing runs for it any more.
func (d *dispatcher) next(key string) (waiting, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	queue := d.queues[key]
	if len(queue) == 0 {
		delete(d.queues, key)
		return waiting{}, false
	}
	d.queues[key] = queue[1:]
	return queue[0], true
}

func (d *dispatcher) release(size int) {
	d.mu.Lock()
	d.bytes -= size
	d.mu.Unlock()
	select {
	case d.room <- struct{}{}:
	default:
	}
}

// wait returns when every function has returned. No more may be added.
func (d *dispatcher) wait() { d.work.Wait() }
