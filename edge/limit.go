package edge

import (
	"github.com/agora-relay/agora"
)

// CountTogether has what the actor says count with all that is said so for its principal at this edge: that of requests, each of which has an
// actor of its own. Principals without a name are nobody in particular. It is called before the actor says anything.
func (a *Actor) CountTogether() {
	if p := a.Principal(); p != nil && p.Name != "" {
		a.quota.CountTogether(agora.ToAgent(p.Tenant, agora.AgentID(reserved+p.Name)))
	}
}

// as is the address of an agent in whose name the actor speaks.
func (a *Actor) as(id agora.AgentID) agora.Address { return agora.ToAgent(a.Principal().Tenant, id) }
