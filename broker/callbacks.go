package broker

import "sync"

// callbackQueue runs small functions that must not block, one after the other, for callers that
// can't run them themselves: a Put must not call its own done, a Listen not its own wake.
// What is posted is bounded by what its posters hold: a lane or an inbox has at most one function here.
type callbackQueue struct {
	some chan struct{} // holds one token while there is something to run, or the end has come

	late sync.WaitGroup // what was posted after the end

	mu   sync.Mutex // guards the fields below
	todo []func()
	done bool // run returns, or has returned
}

func (p *callbackQueue) init() { p.some = make(chan struct{}, 1) }

// post has f run soon. It returns at once.
func (p *callbackQueue) post(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		p.late.Go(f)
		return
	}
	p.todo = append(p.todo, f)
	signal(p.some)
}

// end lets run return once it has run what is there.
func (p *callbackQueue) end() {
	p.mu.Lock()
	p.done = true
	p.mu.Unlock()
	signal(p.some)
}

func (p *callbackQueue) run() {
	for range p.some {
		if p.drain() {
			return
		}
	}
}

// drain runs what is there, and reports whether the end has come.
func (p *callbackQueue) drain() (done bool) {
	for {
		p.mu.Lock()
		todo, done := p.todo, p.done
		p.todo = nil
		p.mu.Unlock()
		for _, f := range todo {
			f()
		}
		if len(todo) == 0 {
			return done
		}
	}
}
