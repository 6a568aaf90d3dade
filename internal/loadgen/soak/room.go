package soak

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// room is a space, with members that publish and members that read.
type room struct {
	name    string
	order   *verify.Order
	members []*member
}

// member is an agent's seat in a room.
type member struct {
	*agent
	room  *room
	space *client.Space // once joined
	gaps  *verify.Gaps
	from  map[int]heard // by the sender's index
}

// heard is what a member has heard of a publisher.
type heard struct {
	track *verify.Track
	id    string // of the publisher
}

// desk is where a sender publishes.
type desk struct {
	line *verify.Line
	seat *member
}

// newRoom makes a room. Each sender publishes in one, or several where there
// are more rooms than senders; receivers sit in two.
func (r *Run) newRoom(k int) *room {
	room := &room{name: fmt.Sprintf("%s-%d", r.name, k)}
	room.order = verify.NewOrder(r.tally.Tally, room.name)
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
	m := &member{agent: a, room: r, gaps: &verify.Gaps{}, from: map[int]heard{}}
	r.members = append(r.members, m)
	a.seats[r.name] = m
}

// desk gives a sender a line to all members.
func (r *room) desk(s *sender, window int) {
	var to []*verify.Track
	for _, m := range r.members {
		m.from[s.index] = heard{verify.NewTrack(m.id, m.gaps), s.id}
		to = append(to, m.from[s.index].track)
	}
	s.desks = append(s.desks, desk{verify.NewLine(s.run.tally.Tally, s.id+" in "+r.name, window, to...), s.seats[r.name]})
}

// publish publishes events, one at a time; one of ten is streamed.
func (s *sender) publish(p *pacer) {
	for p.wait(s.run.sending) && !s.over() {
		d := s.desks[rand.IntN(len(s.desks))]
		switch {
		case d.line.Full():
		case rand.IntN(10) == 0:
			s.streamEvent(d)
		default:
			n := d.line.Take(verify.Sent{Kind: event})
			d.line.Set(n, s.run.tally.outcome(d.seat.space.Publish(s.run.calls, body(event, s.index, n))))
		}
	}
}

func (s *sender) streamEvent(d desk) {
	f := s.run.newFlow(d.line.Name())
	n := d.line.Take(verify.Sent{Kind: event, Load: f})
	data := fmt.Appendf(nil, `{"soak":"event","by":%d,"n":%d,"text":%q}`, s.index, n, f.Write())
	st, err := d.seat.space.Stream(s.run.calls, data)
	d.line.Set(n, s.run.tally.outcome(err))
	if err != nil {
		f.Set(verify.Unknown)
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
	if !ok || !known || from.id != e.From || b.Kind != event {
		t.Violated(verify.Altered, "%s got in %s from %s what nobody published: %.100s", m.id, m.room.name, e.From, e.Data)
		return
	}
	load, fresh := from.track.Arrived(event, b.N, e.Seq)
	if fresh {
		m.room.order.Saw(from.track, event, b.N)
	}
	f, streamed := load.(*verify.Flow)
	if fresh && streamed != e.Stream {
		t.Violated(verify.Altered, "%s: event %d came to %s with stream %t", from.track.Line().Name(), b.N, m.id, e.Stream)
	}
	if e.Stream {
		m.aside(ctx, f.Begin(m.id, m.gaps), e)
	}
}
