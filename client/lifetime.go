package client

import (
	"context"
	"sync"
)

// lifetime is how long the client is there: until it is told to close, and until all of it has ended.
type lifetime struct {
	ctx     context.Context // ends when the client is over
	end     context.CancelFunc
	goodbye chan struct{} // closed by close
	closing sync.Once
	done    chan struct{} // closed when all has ended

	mu  sync.Mutex
	err error // why it ended
}

func newLifetime() *lifetime {
	l := &lifetime{goodbye: make(chan struct{}), done: make(chan struct{})}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// close has the client say goodbye.
func (l *lifetime) close() { l.closing.Do(func() { close(l.goodbye) }) }

// closed reports whether close was called.
func (l *lifetime) closed() bool {
	select {
	case <-l.goodbye:
		return true
	default:
		return false
	}
}

// over notes why the client is over, and ends its context. What waits for done is told later, once all has ended.
func (l *lifetime) over(err error) {
	l.mu.Lock()
	l.err = err
	l.mu.Unlock()
	l.end()
}

// why returns why the client is over, nil while it is not.
func (l *lifetime) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// untilGoodbye returns a context that ends when close is called. The function
// that it returns ends it, too, and the goroutine that it takes.
func (l *lifetime) untilGoodbye() (context.Context, func()) {
	ctx, cancel := context.WithCancel(l.ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-l.goodbye:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); watch.Wait() }
}
