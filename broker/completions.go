package broker

import "sync"

// completions are the answers that a lane has to give, and whoever waits for it to be idle. Its lane's lock guards them.
type completions struct {
	results    *pooledSlice[outcome] // not told yet
	delivering bool                  // a goroutine is telling
	posted     bool                  // one will
	waiters    []chan struct{}
}

// outcome is an answer, and who is told.
type outcome struct {
	done func(Result)
	r    Result
}

// add queues an answer. It is given by deliver, without the lock.
func (c *completions) add(done func(Result), r Result) {
	if done != nil {
		c.results = outcomePool.add(c.results, &outcome{done, r})
	}
}

// any reports whether something is not told yet.
func (c *completions) any() bool { return c.results != nil || c.delivering }

// post reports whether another goroutine is to deliver what is queued, as none does and none will.
func (c *completions) post() bool {
	if c.results == nil || c.delivering || c.posted {
		return false
	}
	c.posted = true
	return true
}

// deliver gives the queued answers in order. One goroutine at a time does, so that
// order holds; the lock is not held while it calls.
func (c *completions) deliver(lock *sync.Mutex) {
	c.posted = false
	if c.delivering {
		return
	}
	c.delivering = true
	for c.results != nil {
		batch := c.results
		c.results = nil
		lock.Unlock()
		for _, o := range batch.all {
			o.done(o.r)
		}
		outcomePool.end(batch)
		lock.Lock()
	}
	c.delivering = false
}

// wait returns what is closed when the lane is idle, or never will be.
func (c *completions) wait() <-chan struct{} {
	w := make(chan struct{})
	c.waiters = append(c.waiters, w)
	return w
}

// wake wakes whoever waits.
func (c *completions) wake() {
	for _, w := range c.waiters {
		close(w)
	}
	c.waiters = nil
}
