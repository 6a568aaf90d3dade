package approval

import (
	"context"

	"github.com/agora-relay/agora"
)

// mostWaiting is how many approvals may wait for a watch to ask.
const mostWaiting = 1024

// Watch tells of a tenant's approvals that are asked for and decided. Its methods are for one goroutine, but for Close.
type Watch struct {
	replica *replica
	ended   <-chan struct{} // closed when the edge closes
	tenant  string
	filter  Filter
	ready   chan struct{} // holds one token while there may be something

	// Guarded by replica.mu.
	queue  []*entry // in the order in which they changed
	queued map[*entry]struct{}
	anew   bool // more has changed than there was room for, or approvals were lost
	closed bool
}

// Watch begins to tell of what changes from now on; what is there says List, called after it. Of f the fields Agent and
// To count. The caller closes it.
func (a *Approvals) Watch(tenant string, f Filter) *Watch {
	w := &Watch{
		replica: a.replica, ended: a.ctx.Done(), tenant: tenant, filter: Filter{Agent: f.Agent, To: f.To},
		ready: make(chan struct{}, 1), queued: map[*entry]struct{}{},
	}
	a.replica.mu.Lock()
	defer a.replica.mu.Unlock()
	a.replica.watches[w] = struct{}{}
	return w
}

// Next returns what has changed since it was called last, as it stands now: it blocks while that is nothing. again says
// that more has changed than a watch has in mind, or that approvals were lost: all is to be listed again then. It fails
// when ctx is over, and with UNAVAILABLE when the watch or the edge closes.
func (w *Watch) Next(ctx context.Context) (changed []Approval, anew bool, err error) {
	for {
		changed, anew, err = w.take()
		if len(changed) > 0 || anew || err != nil {
			return changed, anew, err
		}
		select {
		case <-w.ready:
		case <-w.ended:
			return nil, false, errClosing
		case <-ctx.Done():
			return nil, false, agora.AsError(ctx.Err())
		}
	}
}

func (w *Watch) take() (changed []Approval, anew bool, err error) {
	w.replica.mu.Lock()
	defer w.replica.mu.Unlock()
	if w.closed {
		return nil, false, agora.Errorf(agora.Unavailable, "the watch is closed")
	}
	for _, n := range w.queue {
		if !n.gone {
			changed = append(changed, *n.Approval)
		}
	}
	anew = w.anew
	w.empty()
	w.anew = false
	return changed, anew, nil
}

func (w *Watch) empty() {
	w.queue = nil
	clear(w.queued)
}

// Close ends the watch; Next fails from now on. Idempotent.
func (w *Watch) Close() {
	w.replica.mu.Lock()
	defer w.replica.mu.Unlock()
	delete(w.replica.watches, w)
	w.closed = true
	w.empty()
	w.token()
}

func (w *Watch) token() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// concerned reports whether w tells of n.
func (w *Watch) concerned(n *entry) bool { return w.tenant == n.Tenant && w.filter.Matches(n.Approval) }

// watches are the watches of an edge. Guarded by replica.mu.
type watches map[*Watch]struct{}

// changed tells all whom it concerns that n has changed.
func (all watches) changed(n *entry) {
	for w := range all {
		if _, is := w.queued[n]; is || w.anew || !w.concerned(n) {
			continue
		}
		if len(w.queue) >= mostWaiting {
			w.empty()
			w.anew = true
		} else {
			w.queue = append(w.queue, n)
			w.queued[n] = struct{}{}
		}
		w.token()
	}
}

// lost tells all whom it concerns that n, which was pending, is there no more.
func (all watches) lost(n *entry) {
	for w := range all {
		if w.concerned(n) {
			w.empty()
			w.anew = true
			w.token()
		}
	}
}
