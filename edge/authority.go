package edge

import (
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/policy"
)

// authority is who an actor is, what the rules let it do, and how much it may say.
type authority struct {
	credentials *credentials              // by which it is judged
	principal   atomic.Pointer[Principal] // replaced as a whole when its credentials are renewed
	granted     atomic.Pointer[grant]     // what that may do by the rules; nil where there are none
	quota       admission.Quota           // what it may say
}

// Principal returns who the actor is, and what it may do now. It is not to be changed.
func (a *authority) Principal() *Principal { return a.principal.Load() }

// Check returns nil while the actor's credentials are good: UNAUTHORIZED when
// they have ended or were revoked, UNAVAILABLE when it is to connect again. It does not block.
func (a *authority) Check() error {
	p := a.Principal()
	if p == nil || p.link {
		return nil
	}
	if !p.Expires.IsZero() && !time.Now().Before(p.Expires) {
		return errExpired
	}
	if w, ok := a.credentials.verifier.(Warden); ok {
		return w.Revalidate(p)
	}
	return nil
}

var errExpired = agora.Errorf(agora.Unauthorized, "the credentials of this connection have ended")

// grant is what an actor may do, and the principal and the rules that follows from.
type grant struct {
	*policy.Grant // nil for everything
	who           *Principal
	rules         *policy.Rules
}

// unbound is the grant of all who are bound by neither rules nor claims.
var unbound grant

// grant returns what the actor may do now. It costs a few loads, unless rules or credentials have changed.
func (a *authority) grant() *grant {
	who, rules := a.Principal(), a.credentials.policy.Rules()
	if rules == nil && who.Scope == nil || who.link {
		return &unbound
	}
	if g := a.granted.Load(); g != nil && g.who == who && g.rules == rules {
		return g
	}
	g := &grant{grantBy(rules, who), who, rules}
	a.granted.Store(g)
	return g
}

// forbidden is FORBIDDEN: what may not be done, and which rule says so.
func (a *authority) forbidden(why, format string, what string) error {
	if why == "" {
		return nil
	}
	a.quota.Tenant().Refused.Add(1)
	return agora.Errorf(agora.Forbidden, format+": "+why, what)
}

// countConnection counts a connection for the actor's principal: RATE_LIMITED when that has too
// many, UNAVAILABLE when it holds too much. Principals without a name are nobody in particular, and not counted. Actors that were
// vouched for in the same words share one Principal from then on.
func (a *authority) countConnection(p *admission.Permit, slot *admission.Slot) error {
	who := a.Principal()
	if who == nil || who.Name == "" {
		return nil
	}
	shared, err := p.CountFor(who.Tenant, who.Name, who)
	if err != nil {
		return err
	}
	a.principal.Store(shared.(*Principal))
	return slot.Own(a.Owner(""))
}

// CountTogether has what the actor says count with all that is said so for its principal at this edge: that of requests, each of which has an
// actor of its own. Principals without a name are nobody in particular. It is called before the actor says anything.
func (a *authority) CountTogether() {
	if p := a.Principal(); p != nil && p.Name != "" {
		a.quota.CountTogether(agora.ToAgent(p.Tenant, agora.AgentID(reserved+p.Name)))
	}
}

// Owner returns the owner of what the actor holds as an agent, which may be none in particular.
func (a *authority) Owner(id agora.AgentID) admission.Owner {
	p := a.Principal()
	return admission.Owner{Tenant: p.Tenant, Principal: p.Name, Agent: id}
}

// as is the address of an agent in whose name the actor speaks.
func (a *authority) as(id agora.AgentID) agora.Address {
	return agora.ToAgent(a.Principal().Tenant, id)
}
