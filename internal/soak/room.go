package soak

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/agora-relay/agora/client"
)

// room is a space, with members that publish and members that read.
type room struct {
	name    string
	order   *order
	members []*member
}

// member is an agent's seat in a room.
type member struct {
	*agent
	room  *room
	space *client.Space // once joined
	gaps  *gaps
	from  map[int]heard // by the sender's index
}

// heard is what a member has heard of a publisher.
type heard struct {
	line  *line
	track *track
	id    string // of the publisher
}

// desk is where a sender publishes.
type desk struct {
	line *line
	seat *member
}

// newRoom makes a room. Each sender publishes in one, or several where there
// are more rooms than senders; receivers sit in two.
func (r *Run) newRoom(k int) *room {
	room := &room{name: fmt.Sprintf("%s-%d", r.name, k)}
	room.order = newOrder(r.tally, room.name)
	n := r.cfg.Spaces
	for i, p := range r.receivers {
		if i%n == k || (i+1)%n == k || k%len(r.receivers) == i {
			room.seat(&p.agent)
		}
	}
	var publishers []*sender
	for i, s := range r.senders {
		if i%n == k || k%len(r.senders) == i {
			room.seat(&s.agent)
			publishers = append(publishers, s)
		}
	}
	for _, s := range publishers {
		room.desk(s, max(4, mailboxParts/len(publishers)))
	}
	return room
}

func (r *room) seat(a *agent) {
	m := &member{agent: a, room: r, gaps: &gaps{}, from: map[int]heard{}}
	r.members = append(r.members, m)
	a.seats[r.name] = m
}

// desk gives a sender a line to all members.
func (r *room) desk(s *sender, window int) {
	l := newLine(s.run.tally, s.id+" in "+r.name, window)
	for _, m := range r.members {
		t := &track{name: m.id, gaps: m.gaps}
		l.tracks = append(l.tracks, t)
		m.from[s.index] = heard{l, t, s.id}
	}
	s.desks = append(s.desks, desk{l, s.seats[r.name]})
}

// publish publishes events, one at a time; one of ten is streamed.
func (s *sender) publish(p *pacer) {
	for p.wait(s.run.sending) && !s.over() {
		d := s.desks[rand.IntN(len(s.desks))]
		switch {
		case d.line.full():
		case rand.IntN(10) == 0:
			s.streamEvent(d)
		default:
			n := d.line.take(event, nil)
			d.line.set(n, s.run.tally.outcome(d.seat.space.Publish(s.run.calls, body(event, s.index, n))))
		}
	}
}

func (s *sender) streamEvent(d desk) {
	f := &flow{tally: s.run.tally, name: d.line.name}
	n := d.line.take(event, f)
	data := fmt.Appendf(nil, `{"soak":"event","by":%d,"n":%d,"text":%q}`, s.index, n, f.write())
	st, err := d.seat.space.Stream(s.run.calls, data)
	d.line.set(n, s.run.tally.outcome(err))
	if err != nil {
		f.set(unknown)
		return
	}
	s.pour(st, f, nil, 1+rand.IntN(20))
}

// listen takes events until ctx ends. Streamed ones are read beside it.
func (m *member) listen(ctx context.Context) {
	for e, err := range m.space.Events(ctx) {
		if err != nil {
			return
		}
		if e.Roster == nil {
			m.take(ctx, e)
		}
	}
}

// take checks an event.
func (m *member) take(ctx context.Context, e *client.Event) {
	t := m.run.tally
	b, ok := parse(e.Data)
	from, known := m.from[b.By]
	if !ok || !known || from.id != e.From || b.Kind != event.String() {
		t.violated(Altered, "%s got in %s from %s what nobody published: %.100s", m.id, m.room.name, e.From, e.Data)
		return
	}
	load, fresh := from.line.arrived(from.track, event, b.N, e.Seq)
	if fresh {
		m.room.order.saw(m.id, place{from.line, b.N})
	}
	f, streamed := load.(*flow)
	if fresh && streamed != e.Stream {
		t.violated(Altered, "%s: event %d came to %s with stream %t", from.line.name, b.N, m.id, e.Stream)
	}
	if !e.Stream {
		return
	}
	var rd *reading
	if streamed {
		rd = f.begin(m.id, m.gaps)
	}
	m.run.aside(func() { m.read(ctx, rd, e) })
}
