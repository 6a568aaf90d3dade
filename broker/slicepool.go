package broker

import (
	"sync"

	"github.com/agora-relay/agora/broker/record"
)

// pooledSlice is where something gathers, as long as something does: thousands of lanes may have gathered much once, and nothing since,
// so none of them keeps what it took. Nil is one in which there is nothing.
type pooledSlice[T any] struct{ all []T }

// items returns what has gathered. It is the slice's own.
func (r *pooledSlice[T]) items() []T {
	if r == nil {
		return nil
	}
	return r.all
}

// slicePool lends slices to all lanes. The zero value is ready; its methods may be called by many goroutines at a time.
type slicePool[T any] struct{ pool sync.Pool }

// add returns r, or another slice if r is nil, with x in it behind what was there.
func (p *slicePool[T]) add(r *pooledSlice[T], x *T) *pooledSlice[T] {
	if r == nil {
		var ok bool
		if r, ok = p.pool.Get().(*pooledSlice[T]); !ok {
			r = new(pooledSlice[T])
		}
	}
	r.all = append(r.all, *x)
	return r
}

// end takes r back, which is not to be used after. A large one is left to the garbage collector.
func (p *slicePool[T]) end(r *pooledSlice[T]) {
	if r == nil || cap(r.all) > record.MaxParts {
		return
	}
	clear(r.all)
	r.all = r.all[:0]
	p.pool.Put(r)
}

var (
	entryPool   slicePool[entry]
	outcomePool slicePool[outcome]
)
