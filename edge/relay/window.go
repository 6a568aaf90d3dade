package relay

import (
	"context"
	"sync"
)

// window bounds the bytes that one sender has under way. Whoever takes more
// than is left waits; the socket is not read meanwhile, so TCP pushes back.
type window struct {
	size int

	mu    sync.Mutex // guards the fields below
	used  int
	freed chan struct{} // closed and renewed when bytes are given back to somebody who waits; nil when nobody does
}

// take blocks until n bytes fit, or one message too large for the window is alone in it.
func (w *window) take(ctx context.Context, n int) error {
	for {
		w.mu.Lock()
		if w.used == 0 || w.used+n <= w.size {
			w.used += n
			w.mu.Unlock()
			return nil
		}
		if w.freed == nil {
			w.freed = make(chan struct{})
		}
		freed := w.freed
		w.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// give returns n bytes. It never blocks.
func (w *window) give(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used -= n
	if w.freed != nil {
		close(w.freed)
		w.freed = nil
	}
}

// held returns the bytes that are under way.
func (w *window) held() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used
}
