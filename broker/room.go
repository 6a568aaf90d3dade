package broker

import (
	"sync"

	"github.com/agora-relay/agora/broker/record"
)

// room is where something gathers, as long as something does: thousands of lanes may have gathered much once, and nothing since,
// so none of them keeps what it took. Nil is a room in which there is nothing.
type room[T any] struct{ all []T }

// items returns what has gathered. It is the room's.
func (r *room[T]) items() []T {
	if r == nil {
		return nil
	}
	return r.all
}

// rooms lends room to all lanes. The zero value is ready; its methods may be called by many goroutines at a time.
type rooms[T any] struct{ pool sync.Pool }

// add returns r, or another room if r is nil, with x in it behind what was there.
func (p *rooms[T]) add(r *room[T], x *T) *room[T] {
	if r == nil {
		var ok bool
		if r, ok = p.pool.Get().(*room[T]); !ok {
			r = new(room[T])
		}
	}
	r.all = append(r.all, *x)
	return r
}

// end takes r back, which is not to be used after. Much room is left to the garbage collector.
func (p *rooms[T]) end(r *room[T]) {
	if r == nil || cap(r.all) > record.MaxParts {
		return
	}
	clear(r.all)
	r.all = r.all[:0]
	p.pool.Put(r)
}

var (
	gatherings rooms[entry]
	answers    rooms[outcome]
)
