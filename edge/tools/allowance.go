package tools

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/agora-relay/agora"
)

// allowance has checks done, a few at a time, within the time of processors that each owner may take for them. What one
// owner has checked keeps no other from having its own checked: where several wait, they take turns. Its methods may be
// called at the same time.
type allowance struct {
	rate    float64       // of a processor, that an owner may take permanently
	burst   time.Duration // that an owner may take at once
	workers int
	now     func() time.Time
	refused func() // counts

	mu      sync.Mutex // guards the fields below
	owners  map[string]*account
	turns   []*account // those that have somebody waiting, in turn
	running int
}

// account is what an owner has left. Its times are guarded by the budget's mu.
type account struct {
	left    time.Duration // may be below zero, by what the last checks took
	at      time.Time     // when that was so
	waiting []chan error
	uses    int // that wait or run
}

const (
	burstSeconds = 10   // a burst is what an owner gets in so many seconds
	mostWaiting  = 64   // of one owner
	mostOwners   = 4096 // beyond which those are dropped that have all of theirs
)

// newAllowance returns a budget of some time of processors for each second and owner.
func newAllowance(perSecond time.Duration, refused func()) *allowance {
	return &allowance{
		rate: perSecond.Seconds(), burst: burstSeconds * perSecond, workers: max(1, runtime.GOMAXPROCS(0)/2), now: time.Now, refused: refused, owners: map[string]*account{},
	}
}

// do does f, once it is the owner's turn, and takes from its budget what that takes of a processor. RATE_LIMITED where
// nothing of that is left, or too many of the owner's wait.
func (b *allowance) do(ctx context.Context, owner string, f func() error) error {
	a, turn, err := b.enter(owner)
	if err == nil && turn != nil {
		err = b.wait(ctx, a, turn)
	}
	if err != nil {
		return err
	}
	runtime.LockOSThread() // whose time is taken
	began := cpuTime()
	defer func() {
		took := cpuTime() - began
		runtime.UnlockOSThread()
		b.leave(a, took)
	}()
	return f()
}

// enter counts one more of an owner's in. turn is nil where it may run, else it is told once it may.
func (b *allowance) enter(owner string) (a *account, turn chan error, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a = b.owners[owner]; a == nil {
		b.prune()
		a = &account{left: b.burst, at: b.now()}
		b.owners[owner] = a
	}
	if err := b.spent(a); err != nil {
		return nil, nil, err
	}
	if b.running < b.workers && len(b.turns) == 0 {
		a.uses++
		b.running++
		return a, nil, nil
	}
	if len(a.waiting) >= mostWaiting {
		b.refused()
		return nil, nil, &agora.Error{Code: agora.RateLimited, Message: "too many checks of calls of tools wait", RetryAfter: time.Second}
	}
	turn = make(chan error, 1)
	a.uses++
	if a.waiting = append(a.waiting, turn); len(a.waiting) == 1 {
		b.turns = append(b.turns, a)
	}
	return a, turn, nil
}

// wait waits for a turn.
func (b *allowance) wait(ctx context.Context, a *account, turn chan error) error {
	select {
	case err := <-turn:
		return err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range a.waiting {
		if w == turn {
			a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
			a.uses--
			return agora.AsError(ctx.Err())
		}
	}
	if err := <-turn; err != nil { // it came meanwhile
		return err
	}
	a.uses--
	b.running--
	b.next()
	return agora.AsError(ctx.Err())
}

// leave takes from an owner's what a check took, and lets the next one run.
func (b *allowance) leave(a *account, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.left -= took
	a.uses--
	b.running--
	b.next()
}

// next lets those run whose turn it is. mu is held.
func (b *allowance) next() {
	for b.running < b.workers && len(b.turns) > 0 {
		a := b.turns[0]
		b.turns = b.turns[1:]
		if len(a.waiting) == 0 { // they have gone
			continue
		}
		turn := a.waiting[0]
		if a.waiting = a.waiting[1:]; len(a.waiting) > 0 {
			b.turns = append(b.turns, a)
		}
		err := b.spent(a)
		if err != nil {
			a.uses--
		} else {
			b.running++
		}
		turn <- err
	}
}

// spent returns RATE_LIMITED where nothing is left of an owner's budget. mu is held.
func (b *allowance) spent(a *account) error {
	now := b.now()
	a.left = min(b.burst, a.left+time.Duration(b.rate*float64(now.Sub(a.at))))
	a.at = now
	if a.left > 0 {
		return nil
	}
	b.refused()
	wait := time.Duration(float64(-a.left)/b.rate) + time.Millisecond
	return &agora.Error{Code: agora.RateLimited, Message: "checks of your calls of tools, and of the schemas that you register, have taken too much time", RetryAfter: wait}
}

// prune drops owners of which nothing is to be remembered, where there are many. mu is held.
func (b *allowance) prune() {
	if len(b.owners) < mostOwners {
		return
	}
	now := b.now()
	for owner, a := range b.owners {
		if a.uses == 0 && a.left+time.Duration(b.rate*float64(now.Sub(a.at))) >= b.burst {
			delete(b.owners, owner)
		}
	}
}

// ownerOf is the key of a principal; of an agent, where nobody has asked for its principal.
func ownerOf(tenant, principal string, agent agora.AgentID) string {
	return tenant + "\x00" + cmp.Or(principal, "\x00"+string(agent))
}
