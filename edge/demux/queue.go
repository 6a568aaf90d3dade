package demux

import (
	"bytes"
	"io"
	"unsafe"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
)

// Part is one part of an exchange: the message alone, or a stream's start, chunk or end.
type Part struct {
	agora.Message
	Redelivered bool  // it may have been given before, at this edge or another
	DeadlineMS  int64 // time left until its deadline when it was read; 0 where it has none
	record      int64 // how many records had come with it
}

const (
	partSize  = int(unsafe.Sizeof(Part{}))
	copyBelow = 4 << 10 // bodies up to it are copied: one of them would keep a whole record
)

// newPart returns what a reader gets of a delivery.
func newPart(v *edge.Delivery, record int64) Part {
	p := Part{Message: *v.Message, Redelivered: v.Redelivered, DeadlineMS: v.DeadlineMS, record: record}
	if len(p.Body) <= copyBelow {
		p.Body = bytes.Clone(p.Body)
	}
	return p
}

func (p *Part) size() int { return partSize + len(p.Body) + len(p.Meta.Head) }

// queue is what waits for one reader. Its Demux's mu guards it, but for what is the reader's own.
type queue struct {
	demux *Demux
	of    *Exchange     // nil for the backlog
	ready chan struct{} // holds one token when something has changed

	parts    []Part // from head on
	head     int
	size     int
	hand     Part   // that the reader got last; it has no position where there is none
	taken    uint64 // parts that the reader took
	awaited  uint64 // taken when the pump last waited for it
	ended    bool   // the last part is queued, or was read
	complete bool   // the last part has come: it may still be read from the log
	err      error  // what comes in place of the end
	through  uint64 // everything up to this position was queued, or concerns others

	lagging bool
	missing uint64        // position of the first part that found no room
	record  int64         // of what stands behind through, while it lags; of pinned
	pinned  uint64        // position that is not consumed until the peer was told that the stream is given up; 0 for none
	catchup *edge.Catchup // nil until it reads

	index  int    // in Demux.unread; -1 for none
	low    uint64 // position of the first part that is not consumed, where index is set
	lowest int64  // its record
	since  int64  // ticks since when it is too far behind; 0 while it is not
}

func (q *queue) init(d *Demux, x *Exchange) {
	q.demux, q.of, q.index, q.ready = d, x, -1, make(chan struct{}, 1)
}

// signal has the reader look. It takes no lock.
func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *queue) queued() int { return len(q.parts) - q.head }

// put queues what has come live, or has the queue lag.
func (q *queue) put(v *edge.Delivery) {
	m := v.Message
	if m.Part.Ends() {
		q.complete = true
	}
	if q.ended || q.lagging || m.Seq <= q.through {
		return
	}
	if q.queued() > 0 && q.size+partSize+len(m.Body)+len(m.Meta.Head) > q.demux.room() {
		q.lag(m.Seq)
		return
	}
	q.accept(v, q.demux.records)
	q.through = m.Seq
	q.demux.weigh(q)
	if q.taken != q.awaited && q.size > q.demux.room()/2 {
		q.awaited, q.demux.pressed = q.taken, true
	}
}

// room returns how many bytes a queue may hold.
func (d *Demux) room() int { return d.cfg.Queue * d.cfg.Share() / admission.FullShare }

// accept appends a part that follows, or takes note of the end that it is.
func (q *queue) accept(v *edge.Delivery, record int64) {
	m := v.Message
	if m.Part.Ends() && m.Part != agora.End {
		q.ended, q.err = true, ending(m)
		q.signal()
		return
	}
	q.ended = q.of != nil && (m.Part == agora.End || m.Part == agora.Whole)
	switch {
	case q.queued() == 0:
		q.parts, q.head = q.parts[:0], 0
		q.signal()
	case len(q.parts) == cap(q.parts) && q.head > len(q.parts)/2:
		n := copy(q.parts, q.parts[q.head:])
		clear(q.parts[n:])
		q.parts, q.head = q.parts[:n], 0
	}
	q.parts = append(q.parts, newPart(v, record))
	n := q.parts[len(q.parts)-1].size()
	q.size += n
	q.demux.held += int64(n)
}

// roomy is how many parts a queue that is empty keeps room for.
const roomy = 64

// next consumes the part that the reader has, and gives it the next one into its hands. done is false where there is none now.
func (q *queue) next() (p Part, done bool, err error) {
	q.consume()
	switch {
	case q.queued() > 0:
		q.hand = q.parts[q.head]
		q.parts[q.head] = Part{}
		q.head++
		q.taken++
		n := q.hand.size()
		q.size -= n
		q.demux.held -= int64(n)
		if q.size+n > q.demux.room()/4 && q.size <= q.demux.room()/4 {
			q.demux.hasRoom()
		}
		if q.queued() == 0 && cap(q.parts) > roomy {
			q.parts, q.head = nil, 0
		}
		return q.hand, true, nil
	case q.lagging:
		return Part{}, false, nil
	case q.err != nil:
		return Part{}, true, q.err
	case q.ended:
		return Part{}, true, io.EOF
	}
	return Part{}, false, nil
}

// consume takes the part that the reader has for done with.
func (q *queue) consume() {
	q.hand = Part{}
	q.demux.weigh(q)
}

// drop lets go of everything, and returns the reading of the log that is to be closed, if there is one.
func (q *queue) drop() *edge.Catchup {
	q.demux.held -= int64(q.size)
	q.parts, q.head, q.size, q.hand = nil, 0, 0, Part{}
	c := q.catchup
	q.catchup = nil
	if q.lagging {
		q.lagging = false
		if q.of != nil {
			q.demux.lagging--
		}
	}
	q.demux.weigh(q)
	return c
}
