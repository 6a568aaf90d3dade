package spaces

import (
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
)

// Event is a message of a space on its way to its members here, shared by all
// of them: nobody changes it.
type Event struct {
	agora.Message
	Redelivered bool  // for this member only; such events are not shared
	Stamp       int64 // when it was stored, or one read with it: Unix nanoseconds by the log's clock; 0 where that is not known

	joined agora.AgentID // of a roster: who joined
	broken bool          // a roster that can't be read
	ends   int64         // bytes that the fan has handed on, this event included; set before it is shared
	frames atomic.Pointer[frame]
	mu     sync.Mutex // held while a frame is made
}

// frame is one door's encoding of an event. There are as many as there are
// doors with members here, so a list is looked through fast.
type frame struct {
	key  any
	b    []byte
	next *frame
}

// overhead is what an event costs beside its body: itself, its pointers in
// queues and its frames' headers.
const overhead = 512

// newEvent wraps a message that was read.
func newEvent(m agora.Message) *Event {
	e := &Event{Message: m}
	if m.Kind == agora.Roster {
		r, err := m.RosterBody()
		e.joined, e.broken = r.Joined, err != nil
	}
	return e
}

// newEvents wraps messages that were read, of which the first was stored at stamp. The events are made one by one: a
// member that is slow to take one must not keep its neighbours alive.
func newEvents(ms []agora.Message, stamp int64) []*Event {
	es := make([]*Event, len(ms))
	for i, m := range ms {
		es[i] = newEvent(m)
		es[i].Stamp = stamp
	}
	return es
}

// size is what the event counts in a member's queue.
func (e *Event) size() int { return len(e.Body) + overhead }

// again returns a copy for one member that may have been given e before.
func (e *Event) again() *Event {
	return &Event{Message: e.Message, Redelivered: true, joined: e.joined}
}

// Encoded returns the event's frame in a door's encoding, made by encode once
// for all members that share the event. key names the encoding and is
// comparable. The frame is shared and not to be changed. encode must not call Encoded of the same event.
func (e *Event) Encoded(key any, encode func(*Event) []byte) []byte {
	if b, ok := e.frame(key); ok {
		return b
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.frame(key); ok {
		return b
	}
	b := encode(e)
	e.frames.Store(&frame{key: key, b: b, next: e.frames.Load()})
	return b
}

func (e *Event) frame(key any) ([]byte, bool) {
	for f := e.frames.Load(); f != nil; f = f.next {
		if f.key == key {
			return f.b, true
		}
	}
	return nil, false
}
