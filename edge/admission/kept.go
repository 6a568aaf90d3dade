package admission

import (
	"sync"
	"sync/atomic"
)

// freeKept is how many bytes a request may keep that its owner's share of all unfinished requests does not count: those
// of a small one come together.
const freeKept = 16 << 10

// Kept counts what an edge keeps of one request whose owner has shown credentials, from its first byte on. The zero
// value counts, and refuses nothing. Any goroutine may call its methods.
type Kept struct {
	bytes atomic.Int64

	mu    sync.Mutex // guards the fields below
	usage *Usage
	owner Owner
	taken int64 // of bytes, from usage
	over  bool
}

// Owned says whose the request is: from now on it counts among [RequestBytes] of its owner. It is called once, before
// anything is held.
func (k *Kept) Owned(u *Usage, o Owner) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.usage, k.owner = u, o
}

// Hold counts n bytes more. RATE_LIMITED where the owner may not hold more of unfinished requests.
func (k *Kept) Hold(n int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return errOver
	}
	bytes := k.bytes.Load() + int64(n)
	if k.usage != nil && bytes > freeKept {
		if err := k.usage.Take(RequestBytes, k.owner, bytes-k.taken); err != nil {
			return err
		}
		k.taken = bytes
	}
	k.bytes.Store(bytes)
	return nil
}

// Bytes returns how many bytes are kept. It does not block.
func (k *Kept) Bytes() int64 { return k.bytes.Load() }

// Free says that what was held is kept no more; more may follow.
func (k *Kept) Free() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.free()
}

// free is Free. mu is held.
func (k *Kept) free() {
	if k.taken > 0 {
		k.usage.Give(RequestBytes, k.owner, k.taken)
	}
	k.taken = 0
	k.bytes.Store(0)
}

// Close says that the request is over: nothing of it is kept, and nothing more is held.
func (k *Kept) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.free()
}
