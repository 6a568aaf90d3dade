package client

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// frameCost is what a frame that waits counts besides its text.
const frameCost = 64

// ackBatch is how many frames are done with before they are acknowledged at once.
const ackBatch = 64

// inlog is what one log, the mailbox's or a space's, has sent and the
// application has not dealt with.
type inlog struct {
	space string        // empty: the mailbox
	stall time.Duration // how long a stream may stay unread while it holds up others
	wake  func()        // tells the writer that there is something to acknowledge; never blocks
	freed func()        // tells that there is room again; never blocks

	mu      sync.Mutex // guards the fields below, and those of the streams
	known   bool       // whether pos means anything
	pos     uint64     // last position taken in
	stated  uint64     // position that an edge was told last, and has not answered
	rewound bool       // the edge knew it for none of the log's, and tells so by a gap
	book    ledger
	seen    numbers // highest number by sender's session
	bytes   int     // of what waits
	streams map[streamKey]*inStream
	past    recent[streamKey] // streams that are over, or whose beginning was never seen
	shed    bool              // frames are dropped, to be fetched again
	err     error             // why nothing comes any more
}

// streamKey names a stream to one of its ends: the other end, and the stream.
// In a space there is no other end.
type streamKey struct{ peer, id string }

// enter takes in the position of a frame; it returns false for one that was
// taken in before: by its position, or, where it was stored twice, by its
// number. It is called with the lock held.
func (l *inlog) enter(f *wire.Frame) (ticket uint64, fresh bool) {
	if f.Seq != 0 {
		if f.Seq <= l.pos {
			return 0, false
		}
		l.known, l.pos = true, f.Seq
	}
	ticket = l.book.add(f.Seq)
	if !l.seen.fresh(f.From, f.Session, f.N) {
		l.settle(ticket)
		return 0, false
	}
	return ticket, true
}

// begin makes seq the position after which the log continues, if none is known, or where the edge continues before the
// one that was stated: that is none of the log's, as the position in a receipt is another mailbox's, or the log has
// lost what it had. Streams that were read end then: their parts come from the beginning again, or never.
func (l *inlog) begin(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rewound = l.known && seq < l.stated; l.rewound {
		for k, s := range l.streams {
			l.endStream(k, s, agora.Errorf(agora.StreamAborted, "the log goes on before what was read of the stream"))
		}
	}
	if l.rewound || !l.known {
		l.known, l.pos = true, seq
		l.book = ledger{base: l.book.base + uint64(len(l.book.entries)), done: seq, told: seq}
	}
	l.stated = 0
}

// state notes that an edge is told a position.
func (l *inlog) state(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stated = seq
}

// skip continues after a position, because what comes before it is gone. It
// returns where the hole begins, and false when there is none.
func (l *inlog) skip(from, to uint64) (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to <= l.pos {
		rewound := l.rewound
		l.rewound = false
		return from, rewound
	}
	from = max(from, l.pos+1)
	l.settle(l.book.add(to))
	l.known, l.pos = true, to
	return from, true
}

// settled returns the position up to which the application is done, if it is known.
func (l *inlog) settled() (seq uint64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.book.done, l.known
}

// settle marks a frame as done with. It is called with the lock held.
func (l *inlog) settle(ticket uint64) {
	before := l.book.fresh
	l.book.finish(ticket)
	if after := l.book.fresh; before == 0 && after > 0 || before < ackBatch && after >= ackBatch {
		l.wake()
	}
}

// done marks a message, or an event, as dealt with. One whose parts follow is that once these were read to their end,
// or given up: a program that ends before gets all of it again, as nothing can be made of a rest without its beginning.
func (l *inlog) done(ticket uint64, parts *inStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if parts == nil {
		l.settle(ticket)
		return
	}
	parts.first, parts.left = ticket, true
	parts.settle()
}

// due returns the position to acknowledge now: at once when many frames are
// done with, else only when all is asked for. pending tells that it returned none although there is one.
func (l *inlog) due(all bool) (seq uint64, ok, pending bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !all && l.book.fresh < ackBatch {
		return 0, false, l.book.fresh > 0
	}
	seq, ok = l.book.due()
	return seq, ok, false
}

// stalest returns the handed-out stream with most bytes among those that have
// not been read for too long. It is called with the lock held.
func (l *inlog) stalest(now time.Time) (key streamKey, worst *inStream) {
	for k, s := range l.streams {
		if !s.handed || len(s.chunks) == 0 || now.Sub(s.read) < l.stall {
			continue
		}
		if worst == nil || s.bytes > worst.bytes {
			key, worst = k, s
		}
	}
	return key, worst
}

// taker is what waits in a queue; taken is called with the log's lock held.
type taker interface {
	comparable
	taken()
}

// take returns the next of what waits, waiting for it, until the log ends: what
// was not taken by then was not acknowledged, and comes again to the one who is next.
func take[T taker](ctx context.Context, l *inlog, q *queue[T]) (v T, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return v, err
		}
		l.mu.Lock()
		if l.err != nil {
			defer l.mu.Unlock()
			signal(q.ready) // for whoever else waits
			return v, l.err
		}
		v, ok := q.pop()
		if ok {
			v.taken()
			l.freed()
		}
		l.mu.Unlock()
		if ok {
			return v, nil
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
		}
	}
}

// end ends the streams of a log that gets nothing any more. It is called with the lock held.
func (l *inlog) end(err error) {
	l.err = err
	for k, s := range l.streams {
		l.endStream(k, s, err)
	}
}

// endStream ends a stream. It is called with the lock held.
func (l *inlog) endStream(k streamKey, s *inStream, err error) {
	if s.err == nil {
		s.err = err
	}
	s.settle()
	if l.streams[k] == s {
		delete(l.streams, k)
		l.past.add(k)
	}
	signal(s.ready)
}

// stalled is the error of a stream that was cancelled because nobody read it.
func stalled() error {
	return agora.Errorf(agora.StreamAborted, "the stream was not read and held up others")
}

// abortedStart is the error of a stream whose name a new stream has taken.
func abortedStart() error {
	return agora.Errorf(agora.StreamAborted, "the sender began the stream anew")
}

// ended tells a normal end from a failure.
func ended(err error) bool { return err == io.EOF }
