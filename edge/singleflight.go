package edge

import (
	"context"
	"sync"
)

// singleflight is the commands that this edge does for others. One that is asked for again, by who has no answer, is
// done once: the last to ask is answered. The zero value is ready to use.
type singleflight struct {
	mu  sync.Mutex // guards all
	now map[string]*flight
}

// flight is one command.
type flight struct {
	asked chan struct{} // closed when it is asked for again: who waits is listened to no more
	done  chan struct{} // closed when r is there
	r     commanded
}

// once returns what became of a command, named by all that it says, which do does unless that is being done.
func (a *singleflight) once(ctx context.Context, name string, do func() commanded) commanded {
	a.mu.Lock()
	u, again := a.now[name]
	if !again {
		u = &flight{asked: make(chan struct{}), done: make(chan struct{})}
		put(&a.now, name, u)
		a.mu.Unlock()
		u.r = do()
		a.mu.Lock()
		delete(a.now, name)
		a.mu.Unlock()
		close(u.done)
		return u.r
	}
	close(u.asked)
	mine := make(chan struct{})
	u.asked = mine
	a.mu.Unlock()
	select {
	case <-u.done:
		return u.r
	case <-mine:
	case <-ctx.Done():
	}
	return commanded{Elsewhere: true}
}
