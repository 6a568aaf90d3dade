package call

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// leaving is callers that presence is still to be told wait no more.
type leaving struct {
	presence.Leaving
	code   agora.Code // told to who was asked, should that end the call; empty where nobody was
	stream *stream    // of the request, where that may lack its end; nil for none
}

// pending is what is to be done with a call later.
type pending struct {
	at   time.Time
	call presence.Call
	code agora.Code // end it with this, if nobody has come back to it; empty: its answer need not be known any more
	back bool       // with no code: nobody has taken that
}

// leave has presence told that one caller waits no more, and how its call was then.
func (r *Registry) leave(a *Answer, was stage, code agora.Code) {
	end := !was.whole && (!a.call.Named || was.giveUp != notGivenUp || code == agora.Timeout)
	l := leaving{presence.Leaving{Call: a.call, Waiter: a.id, Whole: was.whole, End: end}, code, nil}
	if a.stream.open() {
		l.stream = a.stream
	}
	r.later(l)
}

// later tells presence, behind: all that leave at a time at once.
func (r *Registry) later(l leaving) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = append(r.leaving, l)
	if r.running || r.ctx.Err() != nil {
		return
	}
	r.running = true
	r.work.Go(func() {
		for r.ctx.Err() == nil && !r.idle() {
			if err := r.flush(r.ctx); err != nil {
				pause.For(r.ctx, retryTime)
			}
		}
	})
}

// retryTime is how long after a failure presence and log are told again.
const retryTime = 500 * time.Millisecond

// idle says that nothing is left to be told, if so.
func (r *Registry) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = len(r.leaving) > 0
	return !r.running
}

// flush tells presence of those that wait no more, and does what follows for their calls. What can't be told now stays.
func (r *Registry) flush(ctx context.Context) error {
	r.mu.Lock()
	some := r.leaving
	r.leaving = nil
	r.mu.Unlock()
	some, open, err := r.cutAll(ctx, some) // before presence forgets them: should this edge die, another one ends them
	r.again(open)
	if len(some) == 0 {
		return err
	}
	told := make([]presence.Leaving, len(some))
	for i, l := range some {
		told[i] = l.Leaving
	}
	states, failed := r.cfg.Presence.Calls.Leave(ctx, r.cfg.Holder, told, r.cfg.MaxAge, linger)
	if failed != nil {
		r.again(some)
		return failed
	}
	var left []leaving
	for i, l := range some {
		if e := r.left(ctx, l, states[i]); e != nil {
			left, err = append(left, l), e
		}
	}
	r.again(left)
	return err
}

// again keeps what could not be told.
func (r *Registry) again(some []leaving) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = append(some, r.leaving...)
}

// left does what follows for a call that a caller waits for no more.
func (r *Registry) left(ctx context.Context, l leaving, state presence.CallState) error {
	switch {
	case state == presence.CallWaited:
		return nil
	case l.Whole || state == presence.CallAnswered:
		r.after(linger, pending{call: l.Call})
		return nil
	case (state == presence.CallLeft || state == presence.CallGone) && l.Named && !l.End: // its caller may have gone before presence knew of it
		r.after(r.cfg.Grace, pending{call: l.Call, code: l.code})
		return nil
	case state == presence.CallLeft:
		return nil
	}
	// It is over; or presence knows nothing of it, and so of nobody else who would wait, now or after its grace.
	return r.finish(ctx, r.cfg.Holder, l.Call, l.code)
}

// Cancel ends a call with a name for all who wait for it, as its caller has given it up: who was asked is told so,
// once. It returns false where no such call is open. It takes a few round trips.
func (r *Registry) Cancel(ctx context.Context, tenant string, caller, callee agora.AgentID, name string) (bool, error) {
	c := presence.Call{Tenant: tenant, Box: NewBox(tenant, caller, name), From: caller, To: callee, Request: name, Named: true}
	open, err := r.cfg.Presence.Calls.IsOpen(ctx, tenant, c.Box)
	if err != nil || !open {
		return false, err
	}
	return true, r.finish(ctx, r.cfg.Holder, c, agora.StreamAborted)
}

// finish tells who was asked that nobody waits for its answer, and looks whether that has come nevertheless.
func (r *Registry) finish(ctx context.Context, h presence.Holder, c presence.Call, code agora.Code) error {
	if err := r.tell(ctx, c, code); err != nil {
		return err
	}
	if err := r.handBackSoon(ctx, c); err != nil {
		return err
	}
	return r.cfg.Presence.Calls.Drop(ctx, h, []presence.Call{c})
}

// tell says in the callee's mailbox that nobody waits for its answer: once, however many edges do. And it says so in
// the box, where a caller may still read whose edge was given up for dead. Without a code there is nothing to say.
func (r *Registry) tell(ctx context.Context, c presence.Call, code agora.Code) error {
	if code == "" {
		return nil
	}
	m := agora.AbortBody{Code: code, Request: c.Request}.Message()
	m.Kind, m.From, m.To, m.Meta.Call = agora.Control, c.From, agora.ToAgent(c.Tenant, c.To), c.Box
	if err := r.stored(r.cfg.Broker.Publish(ctx, "call-over/"+c.Box, m)); err != nil {
		return err
	}
	if !guard.Boxes {
		return nil
	}
	m = agora.AbortBody{Code: code}.Message()
	m.Kind, m.To = agora.Control, agora.ToBox(c.Tenant, c.Box, c.From)
	return r.stored(r.cfg.Broker.Publish(ctx, "call-over/"+c.Box, m))
}

// stored returns an error where it helps to try again.
func (r *Registry) stored(_ uint64, err error) error {
	if err != nil && agora.AsError(err).Code == agora.Unavailable {
		return err
	}
	return nil
}

// after has something done later.
func (r *Registry) after(d time.Duration, p pending) {
	p.at = time.Now().Add(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	at, _ := slices.BinarySearchFunc(r.due, p.at, func(p pending, at time.Time) int { return p.at.Compare(at) })
	r.due = slices.Insert(r.due, at, p)
	for len(r.due) > maxDue { // the log and presence forget by themselves
		r.due = r.due[1:]
	}
}

// maxDue bounds what is to be done later.
const maxDue = 1 << 16

// Tick does what is due: it ends calls with a name whose callers have not come back, drops answers that were read, and
// tells presence now and then what callers wait for. It is to be called about once a second, and blocks for a few round
// trips.
func (r *Registry) Tick(ctx context.Context) {
	var over []presence.Call
	for _, p := range r.takeDue() {
		if p.code != "" {
			r.later(leaving{Leaving: presence.Leaving{Call: p.call, End: true}, code: p.code})
			continue
		}
		if p.back {
			if err := r.handBackLast(ctx, p.call); err != nil {
				r.cfg.Log.Debug("an answer is looked for later that nobody waits for", "err", err)
				r.after(retryTime, p)
				continue
			}
		}
		over = append(over, p.call)
	}
	if len(over) > 0 {
		if err := r.cfg.Presence.Calls.Drop(ctx, r.cfg.Holder, over); err != nil {
			r.cfg.Log.Debug("calls that are over stay listed", "err", err)
		}
	}
	for _, c := range over {
		if !c.Named {
			r.forget(agora.ToBox(c.Tenant, c.Box, c.From), 0)
		}
	}
	if r.isTime() {
		if err := r.Hold(ctx); err != nil {
			r.cfg.Log.Debug("open calls were not told", "err", err)
		}
	}
}

func (r *Registry) takeDue() []pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, n := time.Now(), 0
	for n < len(r.due) && !r.due[n].at.After(now) {
		n++
	}
	due := slices.Clone(r.due[:n])
	r.due = slices.Delete(r.due, 0, n)
	return due
}

// isTime reports whether presence is to be told what is open, before it forgets.
func (r *Registry) isTime() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.held) < r.cfg.MaxAge/4 {
		return false
	}
	r.held = time.Now()
	return true
}

// Hold tells presence again what callers here wait for: it may have lost all it knew. Calls that others have ended
// meanwhile end here. It blocks for a few round trips.
func (r *Registry) Hold(ctx context.Context) error {
	if !guard.Holds {
		return nil
	}
	waiting := map[string]*presence.Waiting{}
	for _, a := range r.answers() {
		asking, opened := a.asking()
		if !opened {
			continue
		}
		k := key(a.call.Tenant, a.call.Box) + a.call.Digest // a name that presence has not answered for yet may stand for another request
		w := waiting[k]
		if w == nil {
			w = &presence.Waiting{Call: a.call, Asking: asking}
			w.Streams = a.stream.open()
			waiting[k] = w
		}
		if asking == 0 || w.Asking > 0 && asking > w.Asking {
			w.Asking = asking
		}
		w.Waiters = append(w.Waiters, a.id)
	}
	if len(waiting) == 0 {
		return nil
	}
	all := make([]presence.Waiting, 0, len(waiting))
	for _, w := range waiting {
		all = append(all, *w)
	}
	ended, err := r.cfg.Presence.Calls.Hold(ctx, r.cfg.Holder, all, r.cfg.MaxAge)
	for _, c := range ended {
		r.endHere(c)
	}
	return err
}

// endHere ends what callers here wait for, as others have ended the call. Its callers finish it as they leave.
func (r *Registry) endHere(c presence.Ended) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a := range r.open[key(c.Tenant, c.Box)] {
		a.lose(errUnreached, !c.Untold)
	}
}

var errUnreached = agora.Errorf(agora.StreamAborted, "the call was given up, as this edge could not be reached")

// forget drops what a box holds before a position, all where that is 0, behind: what is not dropped grows too old.
func (r *Registry) forget(box agora.Address, before uint64) {
	r.background(func() {
		ctx, cancel := context.WithTimeout(r.ctx, askTime)
		defer cancel()
		if err := r.cfg.Broker.Forget(ctx, box, before); err != nil && !errors.Is(err, context.Canceled) {
			r.cfg.Log.Debug("an answer that was read stays until it is too old", "err", err)
		}
	})
}

// Sweep ends what callers of dead edges waited for, unless others wait for it too: who was asked is told, once. Several
// edges may sweep at a time. It blocks for a round trip, more where an edge has died.
func (r *Registry) Sweep(ctx context.Context) error {
	if !guard.Calls {
		return nil
	}
	lost, err := r.cfg.Presence.Calls.Lost(ctx)
	for _, of := range lost {
		for _, c := range of.Calls {
			if c.Streams {
				if err := r.endStream(ctx, &c); err != nil {
					return err
				}
			}
			if err := r.finish(ctx, of.Holder, c, agora.StreamAborted); err != nil {
				return err
			}
			r.count.Lost.Add(1)
		}
		if err := r.handBackFor(ctx, of.Holder, of.Looks); err != nil {
			return err
		}
	}
	return err
}
