package client

import (
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

// joined takes the answer to a join.
func (s *Space) joined(f *wire.Frame) {
	s.log.mu.Lock()
	s.members = f.Members
	if s.rejoin == f.ID && f.ID != "" {
		s.log.shed, s.rejoin, s.refused = false, "", 0
	}
	history := s.history
	s.log.mu.Unlock()
	if !history {
		s.log.begin(f.Seq)
	}
}

// changed follows who is in the space. Of a large one a change names only who came or went. The log's lock is held.
func (s *Space) changed(f *wire.Frame) {
	joined, left := str(f.Joined), str(f.Left)
	switch {
	case f.Members != nil:
		s.members = f.Members
	case joined != "" && !slices.Contains(s.members, joined):
		s.members = append(slices.Clone(s.members), joined)
	case left != "":
		s.members = slices.DeleteFunc(slices.Clone(s.members), func(id string) bool { return id == left })
	}
}

// deliver takes in an event, a part of one, or a change of the roster.
func (s *Space) deliver(f *wire.Frame) {
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Type == "space.event.cancel" { // by ourselves, or by the cluster
		s.sender.out.fail(outKey{laneKey{space: s.name}, f.EventID}, ErrCancelled)
	}
	if f.Type == "space.members" {
		s.changed(f)
	}
	if s.log.shed || l.err != nil || s.sender.life.closed() {
		return
	}
	ticket, fresh := l.enter(f)
	if !fresh {
		return
	}
	switch f.Type {
	case "space.event":
		s.push(&Event{Data: slices.Clone(f.Data)}, f, ticket)
	case "space.members":
		s.push(&Event{Roster: &Roster{Members: f.Members, Joined: str(f.Joined), Left: str(f.Left)}}, f, ticket)
	case "space.event.delta":
		s.delta(f, ticket)
	default:
		l.settle(ticket)
		if in := l.streams[streamKey{id: f.EventID}]; in != nil {
			l.endStream(streamKey{id: f.EventID}, in, endOf(f.Type))
		}
	}
	if l.bytes > s.limit {
		s.overflow()
	}
}

func endOf(typ string) error {
	if typ == "space.event.cancel" {
		return ErrCancelled
	}
	return io.EOF
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// push queues an event. It is called with the lock held.
func (s *Space) push(e *Event, f *wire.Frame, ticket uint64) {
	e.Traceparent = f.Traceparent
	e.Space, e.ID, e.Seq, e.Redelivered, e.s, e.ticket = s.name, f.EventID, f.Seq, f.Redelivered, s, ticket
	if from, ok := member(e.Data, "from"); ok && from[0] == '"' {
		e.From = rawjson.Unquote(from)
	}
	s.log.bytes += e.size()
	s.queue.push(e)
}

// delta takes in a part of an event. The first has all that the event has besides its text.
func (s *Space) delta(f *wire.Frame, ticket uint64) {
	l, key := &s.log, streamKey{id: f.EventID}
	text, _ := member(f.Data, "text")
	if in := l.streams[key]; in != nil {
		in.push(text, ticket)
		return
	}
	if l.past.has(key) {
		l.settle(ticket)
		return
	}
	if _, first := member(f.Data, "from"); !first {
		l.past.add(key)
		l.settle(ticket)
		return
	}
	in := newInStream(l, func() { s.cancelEvent(f.EventID) })
	l.streams[key] = in
	s.push(&Event{Data: slices.Clone(f.Data), Stream: true, in: in}, f, ticket)
	in.push(text, l.book.add(f.Seq))
}

// overflow drops what comes from now on, until there is room. A stream that
// was handed out and is not read must not keep that from happening.
func (s *Space) overflow() {
	if key, in := s.log.stalest(time.Now()); in != nil {
		s.log.endStream(key, in, stalled())
		in.drop()
		in.cancel()
	}
	s.log.shed = s.log.bytes > s.limit
}

// freed fetches what was dropped, when there is room again. It is called with the lock held.
func (s *Space) freed() {
	if !s.log.shed || s.rejoin != "" || s.log.bytes > s.limit/2 || s.log.err != nil {
		return
	}
	f := s.rejoining(s.log.pos)
	s.sender.out.force(f)
}

// rejoining makes the join that continues after a position. It is called with the lock held.
func (s *Space) rejoining(after uint64) *frame {
	s.rejoin, s.log.stated = newID("q"), after
	q := &wire.Frame{Type: "space.join", ID: s.rejoin, Space: s.name, LastSeq: after, HasLastSeq: s.log.known}
	return &frame{other: q, id: s.rejoin}
}

// rejoins reports whether id is that of the join which is under way.
func (s *Space) rejoins(id string) bool {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return id != "" && s.rejoin == id
}

// pause returns how long to wait before the join that was refused is sent again: at least that long, and longer from
// time to time.
func (s *Space) pause(least time.Duration) time.Duration {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	wait := max(least, min(minRetry<<min(s.refused, 10), maxRetry))
	s.refused++
	return wait + rand.N(wait/4+1)
}

// rejoinAgain sends the join again that was refused under that id, unless it is another's turn by now.
func (s *Space) rejoinAgain(id string) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.rejoin == id && s.log.err == nil {
		s.sender.out.force(s.rejoining(s.log.book.done))
	}
}

// finish ends the space.
func (s *Space) finish(why error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.log.err == nil {
		s.log.end(why)
	}
	signal(s.queue.ready)
}

// interrupted notes that the connection was lost: the edge continues after what
// is done with, so nothing is behind. A join that was not answered goes out again.
func (s *Space) interrupted() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.shed = false
}
