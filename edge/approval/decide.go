package approval

import (
	"context"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// Decide decides, once and for all, and returns what stands. Anyone who has decided and says the same again gets that,
// too. It tries until ctx is over. Errors: a [DecidedError] where another decision stands, or nobody has decided in
// time; NOT_FOUND; INVALID_REQUEST and MESSAGE_TOO_LARGE for a verdict that is not as it must be; RATE_LIMITED for one
// of more than 512 bytes where no more may be kept; UNAVAILABLE, after which it may be decided or not.
func (a *Approvals) Decide(ctx context.Context, tenant string, agent agora.AgentID, id string, v Verdict) (Approval, error) {
	n, err := a.entryOf(ctx, tenant, Box(tenant, agent, id))
	if err != nil {
		return Approval{}, err
	}
	if n == nil {
		return Approval{}, unknown(id)
	}
	return a.decide(ctx, n, &v)
}

func (a *Approvals) decide(ctx context.Context, n *entry, v *Verdict) (Approval, error) {
	switch {
	case len(v.Note) > MaxNote || len(v.By) > maxBy || v.By == "":
		return Approval{}, agora.Errorf(agora.InvalidRequest, "a decision has a note of at most %d bytes, and a name of who decides", MaxNote)
	case len(v.Answer) > MaxAnswer:
		return Approval{}, agora.Errorf(agora.MessageTooLarge, "a decision has at most %d bytes", MaxAnswer)
	}
	says := saysDenied
	if v.Approved {
		says = saysApproved
	}
	stands := a.replica.current(n)
	if stands.State == Pending {
		if err := a.replica.admitVerdict(n, v, &a.cfg); err != nil {
			return Approval{}, err
		}
		if a.cfg.Now().After(stands.Expires) {
			says, v = saysExpired, &Verdict{By: string(agora.Cluster)}
		}
		var err error
		if stands, err = a.store(ctx, n, says, v); err != nil {
			return Approval{}, err
		}
	}
	want := Denied
	if v.Approved {
		want = Approved
	}
	if stands.State != want || stands.By != v.By {
		return Approval{}, &DecidedError{stands}
	}
	return stands, nil
}

// store has the book have a decision, and the replica; it returns what stands.
func (a *Approvals) store(ctx context.Context, n *entry, says byte, v *Verdict) (Approval, error) {
	q := a.replica.current(n)
	e, mine, err := a.cfg.Book.Decide(ctx, n.opened, appendVerdict(nil, says, v, !a.outbox.awaited(ctx, &q)))
	if errors.Is(err, broker.ErrNotOpen) {
		a.replica.absent(n)
		return Approval{}, unknown(q.ID)
	}
	if err != nil {
		return Approval{}, err
	}
	d, err := a.replica.decided(n, &e)
	if err != nil {
		return Approval{}, err
	}
	if mine {
		a.count(d)
		a.outbox.add(d, 0)
	}
	return *d, nil
}

// count counts what was decided here.
func (a *Approvals) count(d *Approval) {
	switch d.State {
	case Approved:
		a.total.Approved.Add(1)
	case Denied:
		a.total.Denied.Add(1)
	case Expired:
		a.total.Expired.Add(1)
	}
	a.toDecided.Observe(d.Decided.Sub(d.Asked))
}
