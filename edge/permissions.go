package edge

import (
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/spaces"
)

const addressing = "agent %q may not be addressed"

// mayBe tells whether the actor may be an agent.
func (a *authority) mayBe(id agora.AgentID) error {
	if !a.Principal().May(id) {
		return a.forbidden("its credentials don't name it", "this principal may not be agent %q", string(id))
	}
	return a.forbidden(a.grant().Refuses(policy.Be, string(id)), "this principal may not be agent %q", string(id))
}

// maySee tells whether the actor may see the directory.
func (a *authority) maySee() error {
	return a.forbidden(a.grant().RefusesWhole(policy.Directory), "%s may not be seen", "the directory")
}

// MayRelay returns FORBIDDEN where the actor may neither reserve a place at relays of libp2p nor be connected by them.
func (a *authority) MayRelay() error {
	return a.forbidden(a.grant().RefusesWhole(policy.Relay), "%s may not be used", "the relay")
}

// mayEnter tells whether the actor may do something to a space.
func (a *authority) mayEnter(v policy.Verb, space string) error {
	why := a.refusesSpace(v, space)
	switch v {
	case policy.Join:
		return a.forbidden(why, "space %q may not be joined", space)
	case policy.Create:
		return a.forbidden(why, "space %q may not be created", space)
	}
	return a.forbidden(why, "nothing may be published into space %q", space)
}

func (a *authority) refusesSpace(v policy.Verb, space string) string {
	return a.grant().RefusesSpace(v, space, spaceType(space) == spaces.System)
}

// mayLook lets an actor look into the directory once: FORBIDDEN, RATE_LIMITED.
func (a *authority) mayLook() error {
	if err := errors.Join(a.maySee(), a.quota.Spend(0)); err != nil {
		return agora.AsError(err)
	}
	return nil
}

// MayAddress returns nil while the actor may send to an agent: for a door that knows already who that is. FORBIDDEN, and the errors of Check. It does not block.
func (a *authority) MayAddress(id agora.AgentID) error {
	if err := a.Check(); err != nil {
		return err
	}
	return a.forbidden(a.grant().Refuses(policy.Send, string(id)), addressing, string(id))
}

// MayDecide returns nil if the actor may decide what an agent asks approval for of another one, which is [agora.Cluster] where any operator will do; else
// FORBIDDEN. Who may be the addressee may, and who has the right to approve over the asker, which rules alone give; who may be nobody but the asker never may.
// Without authentication everybody may: then it is the door that knows, by the id that is claimed, who has asked.
func (a *authority) MayDecide(asker, to agora.AgentID) error {
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

// spaceType is the type of a space that is there.
func spaceType(space string) string {
	typ, err := spaces.Type(space)
	if err != nil {
		return spaces.Public
	}
	return typ
}

// Reconsider holds what runs against rules and limits that have changed: who may
// not be its agent any more is closed, and who may not be in a space leaves it. It returns at once.
func (n *Node) Reconsider() {
	n.background(func() {
		for _, s := range n.sessions.all() {
			s.reconsider()
		}
	})
}

// reconsider holds a session against what its agent may do now.
func (s *Session) reconsider() {
	if s.actor.grant().Grant == nil {
		return
	}
	if err := s.actor.mayBe(s.claim.Agent); err != nil {
		s.conn.Close(Reason{Cause: Refused, Code: agora.Forbidden, Text: agora.AsError(err).Message})
		return
	}
	for _, name := range s.cursor.spaces() {
		err := s.actor.mayEnter(policy.Join, name)
		if err == nil {
			continue
		}
		s.leave(s.node.ctx, name) // should it fail, the agent is a member still, and gets nothing here
		s.conn.Notify(Notice{Kind: NoticeFault, To: agora.ToSpace(s.claim.Tenant, name), Err: agora.AsError(err)})
	}
}
