package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/bench/internal/wire"
)

// fan is a load of one space, whose first member publishes to all, itself included.
type fan struct {
	*crew
	line    wire.Line
	quantum int64
	ready   chan struct{}  // a quantum of events may be published
	done    []atomic.Int64 // members that have a quantum, the quanta under way going round
	open    atomic.Int64   // members that something has reached
	sent    atomic.Int64
}

// ear is what a member of a space has heard; its reader's own, but for open.
type ear struct {
	*member
	next, lost int64
	open       bool
}

// FanOut has one agent publish to a space of so many members, all servers having as many, as fast as its credits
// allow: a credit is given when the last member has what was published. Rates count deliveries.
func FanOut(ctx context.Context, t Target, name string, members int, cfg Config) (Result, error) {
	f := &fan{crew: &crew{target: t, name: name, cfg: cfg}, quantum: int64(max(1, cfg.Window/8))}
	defer f.close()
	quanta := max(1, int64(cfg.Window)/f.quantum)
	f.ready, f.done = make(chan struct{}, quanta), make([]atomic.Int64, quanta)
	ears, err := f.join(members)
	if err != nil {
		return Result{}, err
	}
	frame := publisher{fan: f, text: newText(cfg.Size), to: ears[0]}
	heard := func() int { return int(f.open.Load()) }
	if err := reach(ctx, members, heard, func() error { return frame.publish(hello) }); err != nil {
		return Result{}, fmt.Errorf("%w; faults: %s", err, f.fault)
	}
	for range quanta {
		f.ready <- struct{}{}
	}
	stop := make(chan struct{})
	f.write(func() { f.flood(&frame, stop) })
	r, err := f.measure(ctx, int64(cfg.Window)*int64(members))
	close(stop)
	if e := f.drained(ctx, func() int64 { return f.sent.Load() * int64(members) }); err == nil {
		err = e
	}
	f.finish(&r)
	r.Sent = f.sent.Load() * int64(members)
	for _, e := range ears {
		r.Lost += e.lost + f.sent.Load() - e.next
	}
	return r, err
}

// join connects the members, takes each into the space, and listens for it.
func (f *fan) join(n int) ([]*ear, error) {
	members, err := f.newMembers(n, Member, func(i int) int { return i })
	if err != nil {
		return nil, err
	}
	ears := make([]*ear, n)
	return ears, parallel(n, func(i int) error {
		line, err := members[i].Space(f.name + "all")
		if err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
		if i == 0 {
			f.line = line
		}
		e := &ear{member: members[i]}
		ears[i] = e
		f.listen(e.member, wire.Handler{Text: func(text []byte) { f.heard(e, text) }})
		return nil
	})
}

// heard takes what came to a member.
func (f *fan) heard(e *ear, text []byte) {
	_, n, _, ok := read(text)
	switch {
	case !ok:
		f.refused(fmt.Sprintf("%s got %.60q", e.id, text))
		return
	case n == hello:
		if !e.open {
			e.open = true
			f.open.Add(1)
		}
		return
	case n < e.next:
		e.disordered++
		return
	}
	before := e.next / f.quantum
	e.lost += n - e.next
	e.next = n + 1
	e.got.Add(1)
	for q := before; q < e.next/f.quantum; q++ {
		done := &f.done[q%int64(len(f.done))]
		if done.Add(1) == int64(len(f.members)) {
			done.Store(0)
			f.ready <- struct{}{} // there is room for every quantum
		}
	}
}

// publisher is who publishes, with what it writes.
type publisher struct {
	*fan
	to    *ear
	text  []byte
	frame []byte
	id    uint64
}

func (p *publisher) publish(n int64) error {
	p.id++
	stamp(p.text, 0, n, time.Now().UnixNano())
	p.frame = p.line(p.frame[:0], p.id, p.text)
	_, err := p.to.Write(p.frame)
	return err
}

func (f *fan) flood(p *publisher, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-f.ready:
			for range f.quantum {
				if err := p.publish(f.sent.Load()); err != nil {
					if !f.closing.Load() {
						f.refused(err.Error())
					}
					return
				}
				f.sent.Add(1)
			}
		}
	}
}
