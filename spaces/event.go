package spaces

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/eventdata"
	"github.com/agora-relay/agora/presence"
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

// Publication returns what an agent publishes as members get it: signed with the agent's id, stamped with the cluster's
// time where it bears none, and in several parts, the deltas of one event, where its text is a large one. Data that is
// no JSON object is INVALID_REQUEST. What it returns is a copy.
func (h *Hub) Publication(data json.RawMessage, from agora.AgentID) ([]json.RawMessage, error) {
	signed, err := h.sign(data, from)
	if err != nil {
		return nil, err
	}
	if parts := eventdata.Split(signed, h.cfg.DeltaThreshold); parts != nil {
		return parts, nil
	}
	return []json.RawMessage{signed}, nil
}

// Opening returns the data that opens a streamed event as members get it: like [Hub.Publication], but in one part.
func (h *Hub) Opening(data json.RawMessage, from agora.AgentID) (json.RawMessage, error) {
	return h.sign(data, from)
}

// Delta returns the data of one part of a streamed event as members get it: with a string `text`, and signed where it
// bears a signature. INVALID_REQUEST. What it returns is a copy.
func (h *Hub) Delta(data json.RawMessage, from agora.AgentID) (json.RawMessage, error) {
	return eventdata.SignDelta(data, from)
}

func (h *Hub) sign(data json.RawMessage, from agora.AgentID) (json.RawMessage, error) {
	return eventdata.Sign(data, from, h.cfg.Broker.Now().Unix())
}

// The two types of spaces. Only the cluster and who has that right publish
// into a system space; it comes to be by its first join, and never by Create.
const (
	Public = presence.Public
	System = presence.System
)

// StatusSpace is the system space that always exists and tells who comes and goes.
const StatusSpace = "agent.status"

// MaxName is the longest name of a space, in bytes.
const MaxName = 128

// prefixes are the names that have a part behind a dot.
var prefixes = map[string]string{"task": Public, "agent": System, "file": System, "mcp": System}

// Type tells Public from System names; any other name is an INVALID_REQUEST
// error. Public are [a-z0-9_-]+ and task.*, system are agent.*, file.* and
// mcp.*; what follows the dot is of [a-zA-Z0-9_.-]+.
func Type(name string) (string, error) {
	if name == "" {
		return "", agora.Errorf(agora.InvalidRequest, "space name is empty")
	}
	if len(name) > MaxName {
		return "", agora.Errorf(agora.InvalidRequest, "space name is longer than %d characters", MaxName)
	}
	prefix, rest, dotted := strings.Cut(name, ".")
	if !dotted && !strings.ContainsFunc(name, notPlain) {
		return Public, nil
	}
	if typ := prefixes[prefix]; dotted && typ != "" && rest != "" && !strings.ContainsFunc(rest, notDotted) {
		return typ, nil
	}
	// The name is not repeated: it may be anything.
	return "", agora.Errorf(agora.InvalidRequest,
		"space name must be of a-z, 0-9, '_' and '-', or begin with 'task.', 'agent.', 'file.' or 'mcp.'")
}

func notPlain(r rune) bool {
	return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' || r == '-')
}

func notDotted(r rune) bool { return notPlain(r) && r != '.' && !('A' <= r && r <= 'Z') }
