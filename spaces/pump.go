package spaces

import (
	"sync"
	"time"
)

// How long a pump waits before it tries again after an error.
const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 5 * time.Second
)

// pump does its work in a goroutine while there is some, and again whenever it was woken meanwhile: a quiet space has none. Work that fails is
// tried again after a pause, which doubles.
type pump struct {
	work  func() error
	first func(error) // told of an error that follows on work that went well
	all   *sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	closed  bool
	running bool
	again   bool // there is something to do
	timer   *time.Timer
	delay   time.Duration // before the next try; 0 when the last one went well
}

// wake makes the pump work. It does not block.
func (p *pump) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.again = true
	if !p.running {
		p.running = true
		p.all.Go(p.run)
	}
}

func (p *pump) run() {
	for p.goOn() {
		p.settle(p.work())
	}
}

// goOn tells whether there is something to do; the goroutine ends if not.
func (p *pump) goOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = p.again && !p.closed
	p.again = false
	return p.running
}

// settle has the work done again after a moment when it met an error.
func (p *pump) settle(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.delay = 0
	case p.closed:
	default:
		if p.delay == 0 {
			p.first(err)
		}
		p.delay = min(max(2*p.delay, firstDelay), lastDelay)
		p.timer = time.AfterFunc(p.delay, p.wake)
	}
}

// close has no work begin any more. What runs ends soon; who owns all waits for it.
func (p *pump) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
