package client

// queue holds what waits for the application. Its lock is that of its owner;
// how long it gets is bounded by its owner, too.
type queue[T any] struct {
	items []T
	ready chan struct{} // holds one token while there is something, or the end
}

func newQueue[T any]() queue[T] { return queue[T]{ready: make(chan struct{}, 1)} }

// push is called with the owner's lock held.
func (q *queue[T]) push(v T) {
	q.items = append(q.items, v)
	signal(q.ready)
}

// pop is called with the owner's lock held.
func (q *queue[T]) pop() (v T, ok bool) {
	if len(q.items) == 0 {
		return v, false
	}
	v = q.items[0]
	var zero T
	q.items[0] = zero
	q.items = q.items[1:]
	if len(q.items) > 0 {
		signal(q.ready)
	}
	return v, true
}

// signal leaves a token in a channel of size one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
