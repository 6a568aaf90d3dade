package approval

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// Ask stores what an agent asks approval for, once for each tenant, agent and id: asked again, it returns what stands.
// Of q it takes Tenant, ID, Agent, Owner, To, Request, Head and Trace, and Expires where that is sooner than
// Config.Expiry says. It tries until ctx is over. Errors: INVALID_REQUEST where another request stands under that id,
// or something of q is not as it must be; TIMEOUT where Expires has passed; MESSAGE_TOO_LARGE; RATE_LIMITED where too
// much is pending; UNAVAILABLE, after which it may stand or not.
func (a *Approvals) Ask(ctx context.Context, q Approval) (Approval, error) {
	q.Tenant, q.Owner = cmp.Or(q.Tenant, agora.DefaultTenant), ownerOf(q.Owner)
	if err := q.check(); err != nil {
		return Approval{}, err
	}
	box := Box(q.Tenant, q.Agent, q.ID)
	if stands, ok := a.replica.known(q.Tenant, box); ok && stands.State != Pending {
		return stands.again(&q)
	}
	within := a.cfg.Expiry
	if !q.Expires.IsZero() {
		within = min(within, q.Expires.Sub(a.cfg.Now()))
	}
	if within < time.Millisecond {
		return Approval{}, agora.Errorf(agora.Timeout, "the deadline of the request has passed")
	}
	release, err := a.replica.reserve(&q, box, &a.cfg)
	if err != nil {
		return Approval{}, err
	}
	defer release()
	opened, mine, err := a.cfg.Book.Open(ctx, broker.Entry{Tenant: q.Tenant, Name: box, Body: appendRequest(nil, &q, within), Label: q.Owner})
	if err != nil {
		return Approval{}, err
	}
	if mine {
		a.total.Asked.Add(1)
		return a.replica.opened(&opened)
	}
	n, err := a.refresh(ctx, q.Tenant, box) // it may be decided
	if err != nil {
		return Approval{}, err
	}
	if n == nil {
		return Approval{}, errLost
	}
	return a.replica.current(n).again(&q)
}

// check returns what of a request is not as it must be.
func (a *Approval) check() error {
	if _, err := agora.ParseOwnID(string(a.Agent)); err != nil {
		return err
	}
	if _, err := agora.ParseAgentID(string(a.To)); err != nil {
		return err
	}
	switch size := len(a.Request) + len(a.Head) + len(a.Trace); {
	case a.To == a.Agent:
		return agora.Errorf(agora.InvalidRequest, "nobody can ask itself for approval")
	case a.ID == "" || len(a.ID) > maxID:
		return agora.Errorf(agora.InvalidRequest, "the id of a request for approval has 1 to %d bytes", maxID)
	case size > MaxRequest:
		return agora.Errorf(agora.MessageTooLarge, "a request for approval has at most %d bytes", MaxRequest)
	}
	return nil
}

// again returns what stands to who asks for it again.
func (a Approval) again(q *Approval) (Approval, error) {
	if a.To != q.To || !bytes.Equal(a.Request, q.Request) {
		return Approval{}, agora.Errorf(agora.InvalidRequest, "another request for approval stands under the id '%s'", clip(q.ID))
	}
	return a, nil
}
