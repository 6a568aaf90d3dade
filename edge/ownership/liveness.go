package ownership

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// liveness is what there was of a past holder at a moment.
type liveness struct {
	asked error         // of asking it anything: broker.ErrNoEdge where nobody is there under its name
	age   time.Duration // since it renewed its lease
	alive bool          // the lease is not over
	err   error         // of reading the lease
}

// livenessChecks finds out whether past holders are there, once for all who wait for the same one: the agents of a
// killed edge come back in thousands.
type livenessChecks struct {
	cfg *Config

	mu   sync.Mutex // guards the fields below
	next map[presence.Holder]*livenessCheck
	gone map[presence.Holder]time.Time // when nobody was there, last
}

// livenessCheck is one that has not begun yet, or whose outcome is there once done is closed.
type livenessCheck struct {
	done chan struct{}
	seen liveness
}

// check returns what there is of a past holder within a moment from now, not before; false when ctx or the edge is
// over.
func (o *livenessChecks) check(ctx context.Context, h presence.Holder) (liveness, bool) {
	l := o.join(h, o.run)
	select {
	case <-l.done:
		return l.seen, ctx.Err() == nil
	case <-ctx.Done():
	case <-o.cfg.Context.Done():
	}
	return liveness{}, false
}

// join returns the check that begins next. The first who asks for it has it begin.
func (o *livenessChecks) join(h presence.Holder, begin func(presence.Holder, *livenessCheck)) *livenessCheck {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.next[h]
	if l == nil {
		if o.next == nil {
			o.next = map[presence.Holder]*livenessCheck{}
		}
		l = &livenessCheck{done: make(chan struct{})}
		o.next[h] = l
		begin(h, l)
	}
	return l
}

// begin says that the next check begins: who comes from now on wants to know what is seen later.
func (o *livenessChecks) begin(h presence.Holder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.next, h)
}

// record takes down whether nobody was there.
func (o *livenessChecks) record(h presence.Holder, seen liveness) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.gone, func(_ presence.Holder, at time.Time) bool { return time.Since(at) > absentFor })
	if errors.Is(seen.asked, broker.ErrNoEdge) {
		if o.gone == nil {
			o.gone = map[presence.Holder]time.Time{}
		}
		o.gone[h] = time.Now()
	}
}

// absent reports whether nobody was there a moment ago.
func (o *livenessChecks) absent(h presence.Holder) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.gone[h]
	return ok && time.Since(at) <= absentFor
}

// run looks once, in the background, a moment from now.
func (o *livenessChecks) run(h presence.Holder, l *livenessCheck) {
	o.cfg.Go(func() {
		defer close(l.done)
		pause.For(o.cfg.Context, AskAgain)
		o.begin(h)
		if l.seen.lease(o.cfg, h); l.seen.alive {
			l.seen.ask(o.cfg, h)
			l.seen.lease(o.cfg, h)
		}
		o.record(h, l.seen)
	})
}

func (s *liveness) lease(cfg *Config, h presence.Holder) {
	s.age, s.alive, s.err = cfg.Presence.Leases.Age(cfg.Context, h)
}

func (s *liveness) ask(cfg *Config, h presence.Holder) {
	ctx, cancel := context.WithTimeout(cfg.Context, answerTime)
	defer cancel()
	s.asked = cfg.Peers.Ping(ctx, h)
}
