package client

import (
	"cmp"
	"slices"
	"time"

	"github.com/agora-relay/agora"
)

// resume makes everything without a receipt go out again, in order: the session continues.
func (o *outbox) resume() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next, o.ready = 0, nil
	for _, f := range o.frames {
		f.written = false
	}
	for l := range o.blocked {
		l.probe, l.due = nil, time.Time{}
		for _, f := range l.frames {
			if !f.finished && f.n < l.low {
				o.ready = append(o.ready, f) // before what was refused
			}
		}
	}
	o.wake()
}

// restart begins a new session: of what was written nobody can know any more,
// what was not is numbered again. first goes out before everything else.
func (o *outbox) restart(first []*frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, st := range o.streams {
		if st.begun() {
			o.failStream(st, agora.Errorf(agora.StreamAborted, "the session ended before the stream did"))
		}
	}
	for _, f := range o.frames {
		if f.sent && !f.repeatable() {
			o.finish(f, ErrUnknown)
		}
	}
	rest := slices.DeleteFunc(o.frames, func(f *frame) bool { return f.finished })
	o.frames, o.next, o.bytes, o.ready = nil, 0, 0, nil
	o.unwatch()
	clear(o.lanes)
	clear(o.blocked)
	for _, f := range append(first, rest...) {
		f.written, f.since = false, time.Time{}
		o.push(f)
	}
	o.wake()
}

// repeatable reports whether a frame means the same when it is sent in a second
// session: questions, joins, and the cancel of a stream that another sends.
func (f *frame) repeatable() bool {
	if f.other != nil {
		return f.other.Type != "space.event.cancel" && f.other.Type != "call_tool" && f.other.Type != "handoff"
	}
	return f.typ == "cancel" && f.st == nil
}

// refuse finishes the frame that an error without an id speaks of: by its
// number, else the oldest one-shot to the receiver, for nothing else would be
// told without its stream. It returns false when there is none.
func (o *outbox) refuse(to laneKey, n uint64, err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[to]
	if l == nil {
		return false
	}
	late := agora.AsError(err).Code == agora.Timeout
	i := slices.IndexFunc(l.frames, func(f *frame) bool {
		return f.sent && !f.finished && (f.n == n || n == 0 && f.stream == "") && (!late || f.overdue())
	})
	if i < 0 {
		return false
	}
	o.refused(l.frames[i], err)
	return true
}

// overdue reports whether the frame has a deadline that is over, give or take what clocks and the way differ.
func (f *frame) overdue() bool {
	return !f.deadline.IsZero() && time.Until(f.deadline) < time.Second
}

// refuseCancel finishes the cancel of a stream that is over already.
func (o *outbox) refuseCancel(key outKey) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[key.to]
	if l == nil {
		return false
	}
	for _, f := range l.frames {
		if f.typ == "cancel" && f.stream == key.id && f.sent {
			o.refused(f, nil)
			return true
		}
	}
	return false
}

// refuseLargest finishes the largest frame under way: the one that a server
// means which says that a frame was too large to look into.
func (o *outbox) refuseLargest(err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	sent := slices.DeleteFunc(slices.Clone(o.frames), func(f *frame) bool { return !f.sent || f.finished })
	if len(sent) == 0 {
		return false
	}
	o.refused(slices.MaxFunc(sent, func(a, b *frame) int { return cmp.Compare(len(a.body), len(b.body)) }), err)
	return true
}

// refused is called with the lock held.
func (o *outbox) refused(f *frame, err error) {
	if f.st != nil && err != nil {
		o.failStream(f.st, err)
	}
	o.finish(f, err)
	o.compact()
}
