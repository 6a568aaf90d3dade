package tools

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// Bounds of a Ledger.
const (
	maxOpen   = admission.EdgeExecutes
	lookEvery = time.Minute // how often Run looks whether presence has lost them
)

// Ledger writes which executes are open, and remembers those of this edge until they are done: should presence lose
// everything, nobody else could tell it of them. Its methods may be called at the same time.
type Ledger struct {
	store *presence.Store
	now   func() time.Time
	log   *slog.Logger
	mark  string // by which presence tells what this ledger has written

	mu   sync.Mutex // guards the fields below
	open map[executeID]presence.Execute
	done map[executeID]presence.Execute // closed here, and presence may not know
}

type executeID struct {
	tenant         string
	callee, caller agora.AgentID
	request        string
}

func idOf(e *presence.Execute) executeID { return executeID{e.Tenant, e.Callee, e.Caller, e.Request} }

// NewLedger returns a Ledger on presence, whose clock is now. log may be nil.
func NewLedger(store *presence.Store, now func() time.Time, log *slog.Logger) *Ledger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Ledger{
		store: store, now: now, log: log, mark: rand.Text(),
		open: map[executeID]presence.Execute{}, done: map[executeID]presence.Execute{},
	}
}

// Open writes that a task is given; from when it returns nil the task limits what its callee may call. Errors are those
// of [presence.Executes.Open], and RATE_LIMITED where this edge has too many open. One round trip.
func (l *Ledger) Open(ctx context.Context, e presence.Execute) error {
	if e.Until.IsZero() {
		e.Until = l.now().Add(presence.ExecuteLasts)
	}
	if err := l.remember(e); err != nil {
		return err
	}
	if err := l.store.Executes.Open(ctx, l.mark, e); err != nil {
		l.finish(&e) // it may have been written nevertheless
		return err
	}
	return nil
}

func (l *Ledger) remember(e presence.Execute) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses(&e) {
		l.expire()
		if level, full := l.bound().Refuses(l.held(&e), 1); full {
			return admission.Executes.Refusal(level)
		}
	}
	l.open[idOf(&e)] = e
	delete(l.done, idOf(&e))
	return nil
}

// bound is how many tasks may be remembered.
func (l *Ledger) bound() admission.Bound { return admission.Bound{Whole: maxOpen} }

// refuses reports whether one more task may be more than somebody's share: nobody's is less than half. Its caller holds
// mu.
func (l *Ledger) refuses(e *presence.Execute) bool {
	if len(l.open)+len(l.done) < maxOpen/2 {
		return false
	}
	_, full := l.bound().Refuses(l.held(e), 1)
	return full
}

// held counts what is remembered of the levels of who gives a task. Its caller holds mu.
func (l *Ledger) held(of *presence.Execute) (h admission.Held) {
	for _, all := range []map[executeID]presence.Execute{l.open, l.done} {
		for id, e := range all {
			h[admission.OfWhole]++
			if id.tenant != of.Tenant {
				continue
			}
			h[admission.OfTenant]++
			if e.By == of.By && (e.By != "" || id.caller == of.Caller) {
				h[admission.OfPrincipal]++
			}
		}
	}
	return h
}

// expire forgets what is over by itself. Its caller holds mu.
func (l *Ledger) expire() {
	now := l.now()
	for _, all := range []map[executeID]presence.Execute{l.open, l.done} {
		for id, e := range all {
			if !e.Until.After(now) {
				delete(all, id)
			}
		}
	}
}

// Close writes that a task is done; this edge need not be the one at which it was opened. Where presence is away, it is
// told later if this edge has opened the task. One round trip.
func (l *Ledger) Close(ctx context.Context, e presence.Execute) error {
	l.finish(&e)
	if err := l.store.Executes.Close(ctx, e); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.done, idOf(&e))
	return nil
}

// finish takes a task from the open ones to the done ones.
func (l *Ledger) finish(e *presence.Execute) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.open[idOf(e)]; ok {
		delete(l.open, idOf(e))
		l.done[idOf(e)] = known
	}
}

// Held returns how many executes are remembered.
func (l *Ledger) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) + len(l.done)
}

// Restore writes what presence has lost of the tasks opened here, and closes what it was not told of. Where nothing is
// open it does nothing; else it takes one round trip for each 250 agents that have a task.
func (l *Ledger) Restore(ctx context.Context) error {
	l.mu.Lock()
	l.expire()
	open := slices.Collect(maps.Values(l.open))
	l.mu.Unlock()
	if len(open) > 0 {
		if err := l.store.Executes.OpenAgain(ctx, l.mark, open); err != nil {
			return err
		}
	}
	l.mu.Lock()
	done := slices.Collect(maps.Values(l.done)) // those too that were closed meanwhile, and may have been written again
	for _, e := range open {
		if _, still := l.open[idOf(&e)]; !still {
			done = append(done, e)
		}
	}
	l.mu.Unlock()
	if len(done) == 0 {
		return nil
	}
	if err := l.store.Executes.Close(ctx, done...); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range done {
		delete(l.done, idOf(&e))
	}
	return nil
}

// Run calls Restore now and then, until ctx is over: a server that was replaced without anybody's notice is found so.
func (l *Ledger) Run(ctx context.Context) {
	for pause.For(ctx, lookEvery) {
		if err := l.Restore(ctx); err != nil && ctx.Err() == nil {
			l.log.Debug("open executes were not looked after", "err", err)
		}
	}
}
