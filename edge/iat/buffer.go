package iat

import "sync"

// buffer is a slice that comes from a pool and goes back to it: what is quiet keeps none.
type buffer struct{ b []byte }

// maxPooled is the largest buffer that is kept.
const maxPooled = 256 << 10

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, 1024)} }}

func getBuffer() *buffer { return buffers.Get().(*buffer) }

func putBuffer(b *buffer) {
	if cap(b.b) > maxPooled {
		return
	}
	b.b = b.b[:0]
	buffers.Put(b)
}
