package spaces

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// Next returns the events that follow, about max bytes of them and at least
// one; none when there are none now: then wake is called when there are. When
// the member lagged it reads the log, blocking: it slows only itself. One
// goroutine at a time calls it. The slice is good until the next call; the
// events are shared. On error nothing is lost: it may be called again, after a moment.
func (p *Place) Next(ctx context.Context, max int) ([]*Event, error) {
	defer p.rest()
	if err := p.learnMark(ctx); err != nil {
		return nil, err
	}
	for {
		events, err := p.next(ctx, max)
		if err != nil || len(events) == 0 {
			return nil, fault(p.Space(), err)
		}
		if events = p.fitting(events); len(events) > 0 {
			return events, nil
		}
	}
}

// Take is Next as far as that need not wait: more tells that nothing is queued but the log is to be read, which only
// Next does.
func (p *Place) Take(max int) (events []*Event, more bool) {
	if p.told.marked && p.told.mark == 0 {
		return nil, true
	}
	defer p.rest()
	for {
		events, lagging := p.take(max)
		if len(events) == 0 {
			return nil, lagging
		}
		if events = p.fitting(events); len(events) > 0 {
			return events, false
		}
	}
}

// rest notes that Next returned what it held.
func (p *Place) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = false
}

// learnMark finds out, once, up to where events may have been given already.
// The end as it is now is as good as the end at the resume: it marks more,
// never less.
func (p *Place) learnMark(ctx context.Context) error {
	if !p.told.marked || p.told.mark > 0 {
		return nil
	}
	seq, err := p.fan.hub.cfg.Broker.Last(ctx, p.fan.to)
	if err != nil {
		return fault(p.Space(), err)
	}
	p.told.mark, p.told.marked = wholeRecord(seq), seq > 0
	return nil
}

// next returns events from the queue or, when p lags, from the log.
func (p *Place) next(ctx context.Context, max int) ([]*Event, error) {
	events, lagging := p.take(max)
	if len(events) > 0 || !lagging || p.rejoin() {
		return events, nil
	}
	return p.read(ctx, max)
}

// take returns what is queued, and whether p lags when that is nothing.
func (p *Place) take(max int) (events []*Event, lagging bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.told.out) // they are no longer p's to keep alive
	if len(p.queue) == 0 || !p.state.gives() {
		if p.state == placeKeepsUp {
			p.unheard.Store(false)
		}
		return nil, p.state.reads()
	}
	p.busy = true
	n, size := 0, 0
	for n < len(p.queue) && (n == 0 || size+p.queue[n].size() <= max) {
		size += p.queue[n].size()
		n++
	}
	p.weigh(p.size - size)
	if n == len(p.queue) { // the two slices swap: nothing is copied
		events, p.queue = p.queue, p.told.out[:0]
		p.keep(events)
		return events, false
	}
	events = append(p.told.out[:0], p.queue[:n]...)
	rest := copy(p.queue, p.queue[n:])
	clear(p.queue[rest:])
	p.queue = p.queue[:rest]
	p.keep(events)
	return events, false
}

// keep remembers the slice that Next returns, to use it again. A large one is
// let go: a quiet place holds no more than room for a few events.
func (p *Place) keep(out []*Event) {
	p.told.out = out
	if cap(out) > roomy {
		p.told.out = nil
	}
}

// read returns events from p's own inbox. When that has reached the fan's
// position, p becomes a member again and the inbox ends.
func (p *Place) read(ctx context.Context, max int) ([]*Event, error) {
	p.unheard.Store(false)
	inbox := p.ownInbox()
	if inbox == nil {
		return nil, nil
	}
	tail, _ := inbox.Tail()
	ms, err := inbox.Next(ctx, max)
	if err == nil && len(ms) == 0 {
		// The first reading moves the tail: a second one, of what came since,
		// reports whether all up to it was returned.
		tail, _ = inbox.Tail()
		ms, err = inbox.Next(ctx, max)
	}
	if err != nil {
		p.unheard.Store(true)
		return nil, err
	}
	events := newEvents(ms, 0)
	p.mu.Lock()
	p.busy = true
	p.pos.read(events, tail)
	p.mu.Unlock()
	if !p.rejoin() && len(events) > 0 {
		p.unheard.Store(true) // there may be more
	}
	return events, nil
}

// ownInbox returns p's own inbox, opened where p is. It is nil before the fan knows its position (the fan wakes p
// then), where that made p a member since it was seen to lag, also if p lags again since and has what it was handed in
// its queue (it was woken for that), and after Close.
func (p *Place) ownInbox() *broker.Inbox {
	opened := p.fan.opened()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inbox == nil && opened && p.state.reads() && len(p.queue) == 0 {
		p.inbox = p.fan.hub.cfg.Broker.Listen(p.fan.to, p.pos.next(), p.heard)
	}
	return p.inbox
}

// rejoin makes a lagging p a member of the fan again if that is where it
// stands; its own inbox ends then.
func (p *Place) rejoin() bool {
	if !p.fan.rejoin(p) {
		return false
	}
	p.mu.Lock()
	inbox := p.inbox
	p.inbox = nil
	p.mu.Unlock()
	if inbox != nil {
		inbox.Close()
	}
	return true
}

// heard is the wake of the own inbox.
func (p *Place) heard() {
	p.unheard.Store(true)
	p.wake()
}

// fitting drops the rosters that the member is not to be given and copies
// those events that it may have been given already.
func (p *Place) fitting(events []*Event) []*Event {
	kept := events[:0]
	for _, e := range events {
		if e.Kind == agora.Roster && !p.news(e) {
			continue
		}
		if e.Seq <= p.told.mark && e.Kind != agora.Gap {
			e = e.again()
		}
		kept = append(kept, e)
	}
	return kept
}

// news reports whether a roster can be read and says something new to this member: not that it
// joined itself, nor what is older than what it was answered or told.
func (p *Place) news(e *Event) bool {
	if e.broken || e.joined == p.self || e.Seq <= p.told.known || e.N != 0 && e.N <= p.told.version {
		return false
	}
	p.told.version = max(p.told.version, e.N)
	return true
}
