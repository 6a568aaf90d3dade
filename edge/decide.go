package edge

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
)

// MayDecide returns nil if the actor may decide what an agent asks approval for of another one, which is [agora.Cluster] where any operator will do; else
// FORBIDDEN. Who may be the addressee may, and who has the right to approve over the asker, which rules alone give; who may be nobody but the asker never may.
// Without authentication everybody may: then it is the door that knows, by the id that is claimed, who has asked.
func (a *Actor) MayDecide(asker, to agora.AgentID) error {
	p := a.Principal()
	if p.Unverified {
		return nil
	}
	const deciding = "requests for approval of agent %q may not be decided"
	if sole, ok := p.Sole(); ok && sole == asker {
		return a.forbidden("they are its own", deciding, string(asker))
	}
	if to != agora.Cluster && to != asker && p.May(to) && a.grant().Refuses(policy.Be, string(to)) == "" {
		return nil
	}
	return a.forbidden(a.grant().Refuses(policy.Approve, string(asker)), deciding, string(asker))
}
