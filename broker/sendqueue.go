package broker

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// sendQueue is what a lane has gathered for its next records. Its lane's lock guards it.
type sendQueue struct {
	entries *pooledSlice[entry]
	bytes   int
	since   int64 // ticks when the oldest was put there, or a little later
}

func (q *sendQueue) empty() bool { return q.entries == nil }

// items returns what has gathered. It is the queue's own.
func (q *sendQueue) items() []entry { return q.entries.items() }

// full reports whether a part of a size has no room behind what is there. One always has room alone.
func (q *sendQueue) full(size, room int) bool { return !q.empty() && q.bytes+size > room }

func (q *sendQueue) add(e *entry) {
	if q.empty() {
		q.since = agora.Ticks()
	}
	q.bytes += record.SizeOf(&e.m)
	q.entries = entryPool.add(q.entries, e)
}

// shift takes n entries of so many bytes from the front.
func (q *sendQueue) shift(n, bytes int) {
	all := q.items()
	if n == len(all) {
		q.clear()
	} else {
		rest := copy(all, all[n:])
		clear(all[rest:])
		q.entries.all = all[:rest]
		q.bytes -= bytes
	}
	q.since = agora.Ticks() // of what is left, if anything: it was put there while the record before was on its way
}

// putBack puts entries of so many bytes in front. They were the queue's own before.
func (q *sendQueue) putBack(first *pooledSlice[entry], bytes int) {
	for i := range q.items() {
		first = entryPool.add(first, &q.entries.all[i])
	}
	entryPool.end(q.entries)
	q.entries, q.bytes = first, q.bytes+bytes
}

func (q *sendQueue) clear() {
	entryPool.end(q.entries)
	q.entries, q.bytes = nil, 0
}
