package demux

import (
	"io"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
)

// queue is what waits for one reader. Its Demux's mu guards it, but for what is the reader's own.
type queue struct {
	demux *Demux
	of    *Exchange     // nil for the backlog
	ready chan struct{} // holds one token when something has changed

	parts    parts
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

	mark
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

// put queues what has come live, or has the queue lag.
func (q *queue) put(v *edge.Delivery) {
	m := v.Message
	if m.Part.Ends() {
		q.complete = true
	}
	if q.ended || q.lagging || m.Seq <= q.through {
		return
	}
	if q.parts.len() > 0 && q.parts.size+partSize+len(m.Body)+len(m.Meta.Head) > q.demux.room() {
		q.lag(m.Seq)
		return
	}
	q.accept(v, q.demux.position.records)
	q.through = m.Seq
	q.demux.position.weigh(q)
	if q.parts.size > q.demux.room()/2 {
		q.demux.pace.press(q)
	}
}

// room returns how many bytes a queue may hold.
func (d *Demux) room() int { return d.cfg.Queue * d.cfg.Share() / admission.FullShare }

// accept appends a part that follows, or notes the end that it is.
func (q *queue) accept(v *edge.Delivery, record int64) {
	m := v.Message
	if m.Part.Ends() && m.Part != agora.End {
		q.ended, q.err = true, ending(m)
		q.signal()
		return
	}
	q.ended = q.of != nil && (m.Part == agora.End || m.Part == agora.Whole)
	if q.parts.len() == 0 {
		q.signal()
	}
	q.demux.held += int64(q.parts.push(newPart(v, record)))
}

// next consumes the part that the reader has, and gives it the next one into its hands. done is false where there is
// none now.
func (q *queue) next() (p Part, done bool, err error) {
	q.consume()
	switch {
	case q.parts.len() > 0:
		q.hand = q.parts.pop()
		q.taken++
		n, quarter := q.hand.size(), q.demux.room()/4
		q.demux.held -= int64(n)
		if q.parts.size+n > quarter && q.parts.size <= quarter {
			q.demux.pace.hasRoom()
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
	q.demux.position.weigh(q)
}

// drop lets go of everything, and returns the reading of the log that is to be closed, if there is one.
func (q *queue) drop() *edge.Catchup {
	q.demux.held -= int64(q.parts.size)
	q.parts, q.hand = parts{}, Part{}
	c := q.catchup
	q.catchup = nil
	if q.lagging {
		q.lagging = false
		if q.of != nil {
			q.demux.lagging--
		}
	}
	q.demux.position.weigh(q)
	return c
}
