package broker

import "github.com/nats-io/nats.go"

// liveRecord is a record that came by core NATS and is not decoded yet.
type liveRecord struct {
	seq  uint64
	last uint64 // the one before it in its subject; 0 for none
	size int
	m    *nats.Msg
}

// liveBuffer is the live records that an inbox keeps. Its inbox's lock guards it.
type liveBuffer struct {
	queue  []liveRecord // they follow what was read
	staged []liveRecord // they come behind what is being read, each following the one before it
	bytes  int          // of both
}

// hasRoom reports whether a record of a size fits into so many bytes.
func (l *liveBuffer) hasRoom(size, room int) bool { return l.bytes+size <= room }

func (l *liveBuffer) enqueue(q liveRecord) {
	l.queue = append(l.queue, q)
	l.bytes += q.size
}

// dequeue moves about max bytes of the queue, one record at least, behind batch.
func (l *liveBuffer) dequeue(batch []liveRecord, max int) []liveRecord {
	size, n := 0, 0
	for n < len(l.queue) && (n == 0 || size+l.queue[n].size <= max) {
		size += l.queue[n].size
		n++
	}
	batch = append(batch, l.queue[:n]...)
	l.bytes -= size
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if rest == 0 && cap(l.queue) > keepQueue {
		l.queue = nil
	}
	return batch
}

// keepQueue is how many places a drained queue keeps.
const keepQueue = 16

// stage keeps a record while the end of the log is being read, and returns how many it has dropped.
func (l *liveBuffer) stage(q liveRecord, room int) (dropped int) {
	if n := len(l.staged); n > 0 && (q.seq <= l.staged[n-1].seq) {
		return 0
	} else if n > 0 && (q.last != l.staged[n-1].seq || !l.hasRoom(q.size, room)) {
		dropped = l.unstage()
	}
	if !l.hasRoom(q.size, room) {
		return dropped + 1
	}
	l.staged = append(l.staged, q)
	l.bytes += q.size
	return dropped
}

// unstage drops what is staged, and returns how many records that is.
func (l *liveBuffer) unstage() (dropped int) {
	for k := range l.staged {
		l.bytes -= l.staged[k].size
	}
	dropped = len(l.staged)
	l.staged = nil
	return dropped
}

// stagedAfter returns what is staged of records after a sequence.
func (l *liveBuffer) stagedAfter(seq uint64) []liveRecord {
	first := 0
	for first < len(l.staged) && l.staged[first].seq <= seq {
		first++
	}
	return l.staged[first:]
}

func (l *liveBuffer) clear() { *l = liveBuffer{} }
