package aip

import (
	"sync"

	"github.com/agora-relay/agora"
)

// activeCalls are the calls that are being served: they end when their credentials do, and when the edge goes away. The
// zero value is ready to use.
type activeCalls struct {
	mu       sync.Mutex // guards the fields below
	all      map[*caller]struct{}
	over     error // nobody comes any more
	draining bool
}

func (l *activeCalls) add(c *caller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return false
	}
	if l.all == nil {
		l.all = map[*caller]struct{}{}
	}
	l.all[c] = struct{}{}
	return true
}

func (l *activeCalls) remove(c *caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, c)
}

// watch says that a call only watches: it ends when the edge drains, and its caller makes it again elsewhere.
func (l *activeCalls) watch(c *caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.watches = true
	if l.draining {
		c.end(errGone)
	}
}

// drain ends the calls that only watch.
func (l *activeCalls) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	for c := range l.all {
		if c.watches {
			c.end(errGone)
		}
	}
}

// end ends every call, and lets none begin.
func (l *activeCalls) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = err
	for c := range l.all {
		c.end(err)
	}
}

// check ends the calls whose credentials are not good any more, and those whose message does not come in time.
func (l *activeCalls) check() {
	now := agora.Ticks()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.all {
		c.check(now)
	}
}
