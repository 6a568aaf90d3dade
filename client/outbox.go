package client

import (
	"context"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// outbox holds what was sent and has no receipt yet, in the order of sending,
// and gives the writer what it has not written on the present connection.
type outbox struct {
	limit    int
	patience time.Duration
	wake     func()                       // tells the writer; never blocks
	trace    func(context.Context) string // of Config.Traceparent

	mu      sync.Mutex
	frames  []*frame // frames[0] is unfinished
	next    int      // the first that the present connection has not been given
	lanes   map[laneKey]*lane
	blocked map[*lane]struct{}
	ready   []*frame // of lanes that go on, and what blocked ones try again: before the others
	byID    map[string]*frame
	streams map[outKey]*outStream // open ones
	bytes   int
	room    chan struct{} // closed when there is room; nil while nobody waits for it
	err     error         // why nothing goes out any more
}

func newOutbox(limit int, patience time.Duration, wake func()) *outbox {
	return &outbox{
		limit: limit, patience: patience, wake: wake,
		lanes: map[laneKey]*lane{}, blocked: map[*lane]struct{}{}, byID: map[string]*frame{}, streams: map[outKey]*outStream{},
	}
}

// pending returns how much has no receipt yet.
func (o *outbox) pending() (frames, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.frames), o.bytes
}

// add queues a frame, and waits for room before. The error is the context's, or
// the stream's, or the outbox's own.
func (o *outbox) add(ctx context.Context, f *frame) error {
	if o.trace != nil && f.other == nil && (f.typ == "send" || f.typ == "reply" || f.typ == "space.publish") {
		f.trace = o.trace(ctx)
	}
	o.mu.Lock()
	for o.err == nil && o.bytes > 0 && o.bytes+f.size() > o.limit && (f.st == nil || f.st.failed == nil) {
		if o.room == nil {
			o.room = make(chan struct{})
		}
		room := o.room
		o.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
		o.mu.Lock()
	}
	defer o.mu.Unlock()
	if f.st != nil && f.st.failed != nil {
		return f.st.failed
	}
	return o.push(f)
}

// force queues a frame whatever the room.
func (o *outbox) force(f *frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.push(f)
}

// push is called with the lock held.
func (o *outbox) push(f *frame) error {
	if o.err != nil {
		return o.err
	}
	o.number(f)
	o.frames = append(o.frames, f)
	o.bytes += f.size()
	if f.id != "" {
		o.byID[f.id] = f
	}
	if f.more {
		o.streams[f.st.key] = f.st
	}
	o.wake()
	return nil
}

// number gives a frame its place in the lane.
func (o *outbox) number(f *frame) {
	if f.to == (laneKey{}) {
		return
	}
	l := o.lanes[f.to]
	if l == nil {
		l = &lane{}
		o.lanes[f.to] = l
	}
	l.n++
	f.n, f.lane, f.written = l.n, l, false
	if l.low > 0 {
		f.since = time.Now()
	}
	l.frames = append(l.frames, f)
	if f.watch != nil {
		l.watched(f)
	}
}

// encode appends the next frame to write, or nothing when there is none. A
// frame that is never sent again is done with.
func (o *outbox) encode(dst []byte, w *wire.Frame) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.pick()
	if f == nil {
		return dst
	}
	f.sent, f.written = true, true
	dst = f.append(dst, w)
	if f.once {
		o.finish(f, nil)
		o.compact()
	}
	return dst
}

// pick returns the next frame to write, or nil.
func (o *outbox) pick() *frame {
	for len(o.ready) > 0 {
		f := o.ready[0]
		o.ready[0], o.ready = nil, o.ready[1:]
		if f.goes() {
			return f
		}
	}
	for o.next < len(o.frames) {
		f := o.frames[o.next]
		o.next++
		if f.goes() {
			return f
		}
	}
	return nil
}

// goes reports whether a frame is to be written now.
func (f *frame) goes() bool {
	l := f.lane
	return !f.finished && !f.written && (l == nil || l.low == 0 || f.n < l.low || f == l.probe)
}

// finish is called with the lock held; compact must follow.
func (o *outbox) finish(f *frame, err error) {
	if f.finished {
		return
	}
	f.finished, f.err = true, err
	if f.watch != nil && err == nil {
		f.watch.reach(agora.Stored)
	}
	o.bytes -= f.size()
	if f.id != "" {
		delete(o.byID, f.id)
	}
	if f.done != nil {
		close(f.done)
	}
	if l := f.lane; l != nil {
		for len(l.frames) > 0 && l.frames[0].finished {
			l.frames = l.frames[1:]
		}
		if l.probe == f {
			o.probed(f)
		}
	}
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// compact drops finished frames from the front.
func (o *outbox) compact() {
	for len(o.frames) > 0 && o.frames[0].finished {
		o.frames[0] = nil
		o.frames = o.frames[1:]
		o.next = max(0, o.next-1)
	}
}

// receipt takes a cumulative receipt.
func (o *outbox) receipt(to laneKey, n uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.lanes[to]; l != nil {
		for len(l.frames) > 0 && l.frames[0].n <= n && l.frames[0].sent {
			o.finish(l.frames[0], nil)
		}
		o.stored(l, n)
	}
	o.compact()
}

// answered finishes the frame with an id; it returns false when there is none.
func (o *outbox) answered(id string, err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.byID[id]
	if f == nil || id == "" {
		return false
	}
	if err != nil && f.st != nil {
		o.failStream(f.st, err)
	}
	o.finish(f, err)
	if err == nil && f.lane != nil {
		o.stored(f.lane, f.n)
	}
	o.compact()
	return true
}

// fail fails a stream: its parts are dropped, and further ones refused. It
// reports whether there is such a stream, and whether its beginning was written.
func (o *outbox) fail(key outKey, err error) (known, begun bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st := o.streams[key]
	if st == nil {
		return false, false
	}
	o.failStream(st, err)
	o.compact()
	return true, st.begun()
}

// failStream is called with the lock held.
func (o *outbox) failStream(st *outStream, err error) {
	if st.failed == nil {
		st.failed = err
		if st.ends != nil {
			st.ends()
		}
	}
	if o.streams[st.key] == st {
		delete(o.streams, st.key)
	}
	if l := o.lanes[st.key.to]; l != nil {
		for _, f := range l.frames {
			if f.st == st {
				o.finish(f, err)
			}
		}
	}
}

// rename gives a stream the id that the edge has made for it, unless it has failed.
func (o *outbox) rename(st *outStream, id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if st.failed != nil {
		return st.failed
	}
	delete(o.streams, st.key)
	st.key.id = id
	o.streams[st.key] = st
	return nil
}

// ended forgets a stream that has its end stored.
func (o *outbox) ended(st *outStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.streams[st.key] == st {
		delete(o.streams, st.key)
	}
}

// withdraw takes back a frame that nobody waits for any more, if it was never
// written, or is known to be refused; else when it is refused for the moment. It reports whether it was written.
func (o *outbox) withdraw(f *frame, err error) (sent bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f.gone = true
	if !f.sent {
		o.finish(f, err)
		o.compact()
	}
	return f.sent
}

// abandon finishes the frame with an id, for which nobody waits any more, and sends another one where it was written.
// It returns false when it did not.
func (o *outbox) abandon(id string, instead *frame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.byID[id]
	if f == nil {
		return false
	}
	o.finish(f, nil)
	if f.sent {
		o.push(instead)
	}
	o.compact()
	return f.sent
}

// close fails everything.
func (o *outbox) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
	o.unwatch()
	for _, st := range o.streams {
		o.failStream(st, err)
	}
	for _, f := range o.frames {
		o.finish(f, err)
	}
	o.compact()
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}
