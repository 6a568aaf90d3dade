package client

import (
	"cmp"
	"context"
	"slices"

	"github.com/agora-relay/agora"
)

// SendOptions say what a sender wants besides.
type SendOptions struct {
	// Receipts are the tiers that [Pending.WaitFor] may wait for beside Stored: Delivered and Acked. Each costs a frame
	// of the mailbox.
	Receipts agora.Receipts
}

// maxWatched bounds the messages to one receiver whose later receipts are waited for; those of the oldest are then
// waited for no more.
const maxWatched = 1024

// watch is a message whose tiers its sender asked for. The outbox's lock guards reached.
type watch struct {
	reached agora.Receipts
	tiers   map[agora.Receipts]chan struct{} // closed when the tier is reached
	over    chan struct{}                    // closed when no receipt can come any more
	err     error                            // why, of over; nil where the session has ended
}

func newWatch(asked agora.Receipts) *watch {
	w := &watch{tiers: map[agora.Receipts]chan struct{}{}, over: make(chan struct{})}
	for _, tier := range []agora.Receipts{agora.Delivered, agora.Acked} {
		if asked&tier != 0 {
			w.tiers[tier] = make(chan struct{})
		}
	}
	return w
}

// reach notes a tier. Anyone who has acknowledged a message was given it.
func (w *watch) reach(tier agora.Receipts) {
	for t, reached := range w.tiers {
		if t > w.reached && t <= tier {
			close(reached)
		}
	}
	w.reached = max(w.reached, tier)
}

// watched makes the lane remember a message that is to go out. The outbox's lock is held.
func (l *lane) watched(f *frame) {
	if len(l.watches) == maxWatched {
		close(l.watches[0].watch.over)
		l.watches = l.watches[1:]
	}
	l.watches = append(l.watches, f)
}

// reached takes a receipt of a later tier, for all messages to an agent up to number n.
func (o *outbox) reached(agent string, n uint64, tier agora.Receipts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[laneKey{agent: agent}]
	if l == nil {
		return
	}
	l.watches = slices.DeleteFunc(l.watches, func(f *frame) bool {
		switch {
		case f.finished && f.err != nil:
			return true
		case !f.sent || f.n > n:
			return false
		}
		f.watch.reach(tier)
		return f.watch.complete()
	})
}

// undelivered takes the word that a message to an agent, of number n, is not given to it.
func (o *outbox) undelivered(to laneKey, n uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[to]
	if l == nil {
		return
	}
	l.watches = slices.DeleteFunc(l.watches, func(f *frame) bool {
		if f.n != n {
			return false
		}
		f.watch.err = err
		close(f.watch.over)
		return true
	})
}

// complete reports whether every tier that was asked for is reached.
func (w *watch) complete() bool {
	for t := range w.tiers {
		if t > w.reached {
			return false
		}
	}
	return true
}

// unwatch ends the wait for receipts of a session that is over. The outbox's lock is held.
func (o *outbox) unwatch() {
	for _, l := range o.lanes {
		for _, f := range l.watches {
			if f.sent || o.err != nil { // what was not sent goes out in the next session
				close(f.watch.over)
			}
		}
		l.watches = nil
	}
}

// Reached returns the highest tier that the message is known to have reached: 0 while it is under way or where it could
// not be stored.
func (p *Pending) Reached() agora.Receipts {
	p.sender.out.mu.Lock()
	defer p.sender.out.mu.Unlock()
	switch {
	case p.f.watch != nil && p.f.watch.reached > 0:
		return p.f.watch.reached
	case p.f.finished && p.f.err == nil:
		return agora.Stored
	}
	return 0
}

// WaitFor waits until the message has reached a tier, which its [SendOptions] named or which is Stored, and returns nil
// then. Its errors are those of Wait, that of ctx, MESSAGE_TOO_LARGE where its receiver takes no frame so large
// ([Config.MaxFrame]), and [ErrUnknown] where the session has ended, so that no receipt comes any more. INVALID_REQUEST
// where the tier was not asked for.
func (p *Pending) WaitFor(ctx context.Context, tier agora.Receipts) error {
	if err := p.Wait(ctx); err != nil || tier == agora.Stored {
		return err
	}
	var reached chan struct{}
	if p.f.watch != nil {
		reached = p.f.watch.tiers[tier]
	}
	if reached == nil {
		return agora.Errorf(agora.InvalidRequest, "this receipt was not asked for")
	}
	defer p.sender.waiters.expect()()
	select {
	case <-reached:
		return nil
	default:
	}
	select {
	case <-reached:
		return nil
	case <-p.f.watch.over:
		return cmp.Or(p.f.watch.err, ErrUnknown)
	case <-ctx.Done():
		return ctx.Err()
	}
}
