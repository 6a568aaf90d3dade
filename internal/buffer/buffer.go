// Package buffer has slices that come from a pool and go back to it: a connection that is quiet keeps none.
package buffer

import "sync"

// Buffer is a slice of bytes from the pool. It belongs to who took it, until that puts it back.
type Buffer struct{ B []byte }

// largest is the largest buffer that is kept: one large frame must not make every later one cost as much.
const largest = 256 << 10

var pool = sync.Pool{New: func() any { return &Buffer{make([]byte, 0, 1024)} }}

// Get returns an empty buffer.
func Get() *Buffer { return pool.Get().(*Buffer) }

// Put gives a buffer back, which nobody may use any more.
func Put(b *Buffer) {
	if cap(b.B) > largest {
		return
	}
	b.B = b.B[:0]
	pool.Put(b)
}
