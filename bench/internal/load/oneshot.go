package load

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/bench/internal/wire"
)

// recent is how many of the last messages' times are kept; more than can be under way.
const recent = 1 << 12

// pair is a load of one agent that sends messages to another, at another server.
// What it has got are receipts.
type pair struct {
	*crew
	*sender
	way   flow
	ready chan struct{}        // a message may be sent
	at    [recent]atomic.Int64 // when each was written, in Unix nanoseconds; 0 once it is receipted
	came  atomic.Int64         // at the receiver, in order
}

// OneShots has one agent send messages to another, so many under way, each until
// its receipt has come. Rates count receipts, and their delay is from write to receipt.
func OneShots(ctx context.Context, t Target, name string, underWay int, cfg Config) (Result, error) {
	p := &pair{crew: &crew{target: t, name: name, cfg: cfg}, ready: make(chan struct{}, underWay)}
	defer p.close()
	if err := p.connect(cfg); err != nil {
		return Result{}, err
	}
	open := func() int {
		if p.way.open.Load() {
			return 1
		}
		return 0
	}
	if err := reach(ctx, 1, open, func() error { return p.sender.write(&p.way, hello, 0) }); err != nil {
		return Result{}, fmt.Errorf("%w; faults: %s", err, p.fault)
	}
	for range underWay {
		p.ready <- struct{}{}
	}
	p.from.Store(time.Now().Add(cfg.Warm).UnixNano())
	p.until.Store(time.Now().Add(cfg.Warm + cfg.Time).UnixNano())
	stop := make(chan struct{})
	p.crew.write(func() { p.flood(stop) })
	r, err := p.measure(ctx, 0)
	close(stop)
	if e := p.drained(ctx, p.want); err == nil {
		err = e
	}
	p.finish(&r)
	r.Sent = p.way.sent.Load()
	r.Lost = p.way.lost + r.Sent - p.way.next
	return r, err
}

func (p *pair) connect(cfg Config) error {
	receivers, err := p.newMembers(1, Receives, func(int) int { return 1 })
	if err != nil {
		return err
	}
	members, err := p.newMembers(1, Sends, func(int) int { return 0 })
	if err != nil {
		return err
	}
	members = append(members, receivers...)
	p.sender = &sender{member: members[0], text: newText(cfg.Size)}
	if p.way.line, err = members[0].Message(members[1].id); err != nil {
		return err
	}
	p.listen(members[0], wire.Handler{Receipt: p.receipted})
	p.listen(members[1], wire.Handler{Text: func(text []byte) { p.arrived(members[1], text) }})
	return nil
}

// want returns how many receipts are to come; no end of them while messages are missing.
func (p *pair) want() int64 {
	if sent := p.way.sent.Load(); p.came.Load() >= sent {
		return sent
	}
	return math.MaxInt64
}

func (p *pair) arrived(m *member, text []byte) {
	_, n, _, ok := read(text)
	switch f := &p.way; {
	case !ok:
		p.refused(fmt.Sprintf("%s got %.60q", m.id, text))
	case n == hello:
		f.open.Store(true)
	case n < f.next:
		m.disordered++
	default:
		f.lost += n - f.next
		f.next = n + 1
		p.came.Add(1)
	}
}

// receipted takes the receipt of a message; those of hellos don't count.
func (p *pair) receipted(id uint64) {
	at := p.at[id%recent].Swap(0)
	if at == 0 {
		return
	}
	p.sender.got.Add(1)
	p.timed(p.member, at)
	p.ready <- struct{}{} // there is room for all that are under way
}

func (p *pair) flood(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-p.ready:
		}
		now := time.Now().UnixNano()
		p.at[(p.id+1)%recent].Store(now)
		if err := p.sender.write(&p.way, p.way.sent.Load(), now); err != nil {
			if !p.closing.Load() {
				p.refused(err.Error())
			}
			return
		}
		p.way.sent.Add(1)
	}
}
