// Package lock has a mutex whose holder may wait for others, as for the answer of a server: whoever waits for the mutex meanwhile can give up.
package lock

import (
	"context"
	"sync"
)

// Mutex is a mutual exclusion lock that may be held while its holder waits. Its zero value is unlocked. It must not be copied after its
// first use.
type Mutex struct {
	mu    sync.Mutex    // guards the fields below
	freed chan struct{} // closed when the mutex is unlocked; nil while nobody waits for that
	held  bool
}

// Lock locks m, and blocks until it may.
func (m *Mutex) Lock() { _ = m.LockContext(context.Background()) }

// LockContext locks m, and blocks until it may or ctx is over: then it returns ctx's error, and m is not the caller's.
func (m *Mutex) LockContext(ctx context.Context) error {
	for {
		freed := m.take()
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take locks m, or returns what tells that it is unlocked.
func (m *Mutex) take() (freed chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.held {
		m.held = true
		return nil
	}
	if m.freed == nil {
		m.freed = make(chan struct{})
	}
	return m.freed
}

// Unlock unlocks m, which the caller holds.
func (m *Mutex) Unlock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = false
	if m.freed != nil {
		close(m.freed)
		m.freed = nil
	}
}

// TryLock locks m if it may at once, and reports whether it did.
func (m *Mutex) TryLock() bool { return m.take() == nil }
