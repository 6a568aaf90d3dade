package client

import "sync/atomic"

// waiters counts the calls that wait for an answer, which may stand behind frames that the application has not taken:
// while there are any, reading continues.
type waiters struct {
	n    atomic.Int32
	room chan struct{} // holds a token when bytes were freed or a call began to wait
}

func newWaiters() *waiters { return &waiters{room: make(chan struct{}, 1)} }

// expect notes that a call waits for an answer; the function that it returns ends that.
func (w *waiters) expect() func() {
	w.n.Add(1)
	signal(w.room)
	return func() { w.n.Add(-1) }
}

// any reports whether a call waits.
func (w *waiters) any() bool { return w.n.Load() > 0 }
