package edge

import "github.com/agora-relay/agora/internal/lock"

// order keeps what Pull has returned and what stands between deliveries apart: until its door has put the deliveries into
// the order in which it writes, nothing comes between them.
type order struct {
	lock.Mutex
	pulled bool // deliveries are on their way from Pull to their place; the writer's own
}

// pulls begins a Pull; waits is called where that has to wait.
func (o *order) pulls(waits func()) {
	if !o.TryLock() {
		waits()
		o.Lock()
	}
}

// pulledSome ends a Pull: where it returned something, only once that is queued.
func (o *order) pulledSome(some bool) {
	if o.pulled = some; !some {
		o.Unlock()
	}
}

// queued ends a Pull that has returned something. Idempotent.
func (o *order) queued() {
	if o.pulled {
		o.pulled = false
		o.Unlock()
	}
}

// Queued says that what the last Pull returned has its place in the order of what is written: what the door queues from now on
// stands behind it. Where the door does not say so, Written does.
func (s *Session) Queued() { s.order.queued() }

// Between calls f while no deliveries are on their way from Pull to their place. It blocks while a Pull runs.
func (s *Session) Between(f func()) {
	s.order.Lock()
	defer s.order.Unlock()
	f()
}
