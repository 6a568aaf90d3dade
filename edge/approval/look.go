package approval

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/agora-relay/agora"
)

// Get returns an approval by the word of the book's leader, unless it is known to be decided. NOT_FOUND, UNAVAILABLE.
func (a *Approvals) Get(ctx context.Context, tenant string, agent agora.AgentID, id string) (Approval, error) {
	box := Box(tenant, agent, id)
	if d, ok := a.replica.known(tenant, box); ok && d.State != Pending {
		return d, nil
	}
	n, err := a.refresh(ctx, tenant, box)
	if err != nil {
		return Approval{}, err
	}
	if n == nil {
		return Approval{}, unknown(id)
	}
	return a.replica.current(n), nil
}

// Find is Get for an approval of whichever agent: INVALID_REQUEST where two have used the id.
func (a *Approvals) Find(ctx context.Context, tenant, id string) (Approval, error) {
	agent, n := a.replica.asker(tenant, id)
	if n == 0 {
		if err := a.CatchUp(ctx); err != nil {
			return Approval{}, err
		}
		agent, n = a.replica.asker(tenant, id)
	}
	switch n {
	case 0:
		return Approval{}, unknown(id)
	case 1:
		return a.Get(ctx, tenant, agent, id)
	}
	return Approval{}, agora.Errorf(agora.InvalidRequest, "two agents used this id: name one")
}

// Filter says which approvals are meant: those for which every field that is set holds.
type Filter struct {
	State State
	Agent agora.AgentID
	To    agora.AgentID
	After uint64 // of a List: those alone that stand behind this place in the book
	Most  int    // of a List; 1,000, and no more than that
}

// Matches reports whether an approval is meant.
func (f *Filter) Matches(d *Approval) bool {
	return (f.State == "" || f.State == d.State) && (f.Agent == "" || f.Agent == d.Agent) && (f.To == "" || f.To == d.To)
}

const mostListed = 1000

// List returns a tenant's approvals as the replica has them, those asked first first; more says that there are others.
// It does not block; CatchUp has the replica be as the book is.
func (a *Approvals) List(tenant string, f Filter) (all []Approval, more bool) {
	if f.Most <= 0 || f.Most > mostListed {
		f.Most = mostListed
	}
	return a.replica.list(tenant, &f)
}

// Pending returns what an agent is asked for, at most 1,000, in no order. It costs next to nothing while nothing is
// pending at all.
func (a *Approvals) Pending(tenant string, to agora.AgentID) []Approval {
	return a.replica.pendingFor(tenant, to)
}

// IsPending reports whether an approval is pending, as the replica has it. It costs next to nothing while nothing is
// pending at all.
func (a *Approvals) IsPending(tenant string, asker, to agora.AgentID, id string) bool {
	return a.replica.isPending(tenant, asker, to, id)
}

// IsDecided reports whether the approval of a box is known to be decided, as the replica has it.
func (a *Approvals) IsDecided(tenant, box string) bool {
	d, ok := a.replica.known(tenant, box)
	return ok && d.State != Pending
}

// How often who waits asks the book's leader, besides what the replica is told.
const (
	askAgain = 15 * time.Second
	askTime  = 5 * time.Second
)

// Await blocks until an approval is decided, at whatever edge, and returns it. Errors: NOT_FOUND where there is none;
// UNAVAILABLE where it was lost, the edge closes, or ctx is over. While the book can't be reached it waits on.
func (a *Approvals) Await(ctx context.Context, tenant string, agent agora.AgentID, id string) (Approval, error) {
	box := Box(tenant, agent, id)
	n, err := a.entryOf(ctx, tenant, box)
	if err != nil {
		return Approval{}, err
	}
	if n == nil {
		return Approval{}, unknown(id)
	}
	timer := time.NewTimer(askAgain + rand.N(askAgain))
	defer timer.Stop()
	for {
		d, changed, err := a.replica.outcome(n)
		if err != nil || changed == nil {
			return d, err
		}
		select {
		case <-changed:
		case <-timer.C:
			timer.Reset(askAgain + rand.N(askAgain))
			a.askFor(ctx, tenant, box)
		case <-ctx.Done():
			return Approval{}, agora.AsError(ctx.Err())
		case <-a.ctx.Done():
			return Approval{}, errClosing
		}
	}
}

// askFor has the replica be as the book's leader says; where that does not answer, who waits continues waiting.
func (a *Approvals) askFor(ctx context.Context, tenant, box string) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_, _ = a.refresh(ctx, tenant, box)
}
