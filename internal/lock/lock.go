// Package lock has a mutex whose holder may wait for others, as for the answer of a server: the one who waits for the
// mutex meanwhile can give up.
package lock

import (
	"context"
	"sync/atomic"
)

// Mutex is a mutual exclusion lock that may be held while its holder waits. Its zero value is unlocked, and as large as
// a [sync.Mutex]. It must not be copied after its first use.
type Mutex struct {
	held atomic.Pointer[waiters] // nil while nobody holds it
}

// waiters are those who wait for a mutex that is held.
type waiters struct{ freed chan struct{} }

// nobody waits.
var nobody waiters

// Lock locks m, and blocks until it may.
func (m *Mutex) Lock() { _ = m.LockContext(context.Background()) }

// LockContext locks m, and blocks until it may or ctx is over: then it returns ctx's error, and m is not the caller's.
func (m *Mutex) LockContext(ctx context.Context) error {
	for !m.TryLock() {
		w := m.held.Load()
		if w == &nobody {
			w = &waiters{make(chan struct{})}
			if !m.held.CompareAndSwap(&nobody, w) {
				continue
			}
		}
		if w == nil {
			continue
		}
		select {
		case <-w.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// TryLock locks m if it may at once, and reports whether it did.
func (m *Mutex) TryLock() bool { return m.held.CompareAndSwap(nil, &nobody) }

// Unlock unlocks m, which the caller holds.
func (m *Mutex) Unlock() {
	switch w := m.held.Swap(nil); w {
	case nil:
		panic("lock: unlock of a mutex that nobody holds")
	case &nobody:
	default:
		close(w.freed)
	}
}
