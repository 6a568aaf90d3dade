// Package pump does work in a goroutine while there is some, and again after a pause where it failed: what is quiet has no goroutine.
package pump

import (
	"sync"
	"time"
)

// Pump does its work whenever it was woken, one time at a time. It is set up before it is woken first, and works no more once it is closed.
type Pump struct {
	Work      func() error                         // returns when nothing is left to do
	Failed    func(err error, again time.Duration) // told of each error, and how long the pause is; it must not block
	LastDelay time.Duration                        // the longest pause
	All       *sync.WaitGroup                      // in which the goroutine is waited for, after Close

	mu      sync.Mutex // guards the fields below
	closed  bool
	running bool
	again   bool // there is something to do
	retry   Retry
}

// Wake has the pump work. It does not block.
func (p *Pump) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.again = true
	if !p.running {
		p.running = true
		p.All.Go(p.run)
	}
}

// run works as long as there is something to do. What met an error is done again after a pause.
func (p *Pump) run() {
	p.mu.Lock()
	for p.again && !p.closed {
		p.again = false
		p.mu.Unlock()
		err := p.Work()
		p.mu.Lock()
		switch {
		case err == nil:
			p.retry.Over()
		case !p.closed:
			p.retry.Longest = p.LastDelay
			p.Failed(err, p.retry.Again(p.Wake))
		}
	}
	p.running = false
	p.mu.Unlock()
}

// Close has no work begin any more. What runs ends soon; who owns All waits for it. Idempotent.
func (p *Pump) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.retry.Stop()
}

// FirstDelay is the pause after something that failed, where that before it went well; each one after it is twice as long.
const FirstDelay = 100 * time.Millisecond

// Retry has something done again that has failed, after a pause that doubles: once, however often it has failed meanwhile. Its methods are for one
// goroutine at a time; those of a nil Retry, but for Again, do nothing.
type Retry struct {
	Longest time.Duration // the longest pause

	timer *time.Timer
	pause time.Duration // the last one; 0 once it has gone well
}

// Again has f called on a goroutine of its own after a pause, which it returns, in place of what was to be called before. It does not block.
func (r *Retry) Again(f func()) time.Duration {
	r.pause = min(max(2*r.pause, FirstDelay), r.Longest)
	if r.timer == nil {
		r.timer = time.AfterFunc(r.pause, f)
	} else {
		r.timer.Reset(r.pause)
	}
	return r.pause
}

// Over notes that it has gone well: the next pause is a short one.
func (r *Retry) Over() {
	if r != nil {
		r.pause = 0
	}
}

// Stop has nothing called any more that has not been yet.
func (r *Retry) Stop() {
	if r != nil && r.timer != nil {
		r.timer.Stop()
	}
}
