package edge

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Peers of libp2p show by their key which peer they are, and no credentials. Anyone who has some registers an agent
// with the id of a peer, and the peer says by its key that it will speak as that agent: then it is bound, and speaks as
// the agent by what the credentials allow. Credentials alone bind nobody, as a peer id is no secret.

// boundAs is the dialect under which it is written down for whom a peer speaks.
const boundAs = "p2p"

// Binding has a peer speak as an agent.
type Binding struct {
	Peer   string
	Agent  agora.AgentID
	Lasts  time.Duration // 0 stands for Config.Register
	Proven int64         // when the peer has said so by its key, in milliseconds since 1970; 0 where it has not
}

// MayBindPeer returns nil where the actor may ask for a binding: FORBIDDEN where it may not be the agent, or the peer
// has bound itself to another one later than the binding was proven; UNAUTHORIZED, UNAVAILABLE. The door has asked
// before whether the binding is proven.
func (a *Actor) MayBindPeer(ctx context.Context, b Binding) error {
	_, err := a.mayBindPeer(ctx, b)
	return err
}

// mayBindPeer is MayBindPeer that returns what was bound so far.
func (a *Actor) mayBindPeer(ctx context.Context, b Binding) (*presence.Bound, error) {
	if err := errors.Join(a.Check(), a.mayBe(b.Agent)); err != nil {
		return nil, agora.AsError(err)
	}
	found, err := a.node.cfg.Presence.Peers.Find(ctx, b.Peer)
	if err != nil {
		return nil, agora.AsError(err)
	}
	has := found.Bound
	if b.Proven != 0 && has != nil && has.Proven >= b.Proven && !a.hasBound(has, b.Agent) {
		return nil, agora.Errorf(agora.Forbidden, "peer %q has bound itself later than this proof was made", b.Peer)
	}
	return has, nil
}

// hasBound reports whether it is the actor's principal that has bound a peer to an agent.
func (a *Actor) hasBound(has *presence.Bound, id agora.AgentID) bool {
	who := a.Principal()
	_, by, err := readVouched(has.By)
	return err == nil && by.Name == who.Name && by.Tenant == who.Tenant && has.Tenant == who.Tenant && has.Agent == id
}

// BindPeer has a peer speak as an agent, where that is proven, and returns whether it does. A peer speaks as one agent
// at a time, and the last proof counts. Without one nothing changes; but without authentication the peer is the agent
// by that claim, unless it has proven to be another one. Errors are those of MayBindPeer.
func (a *Actor) BindPeer(ctx context.Context, b Binding) (bound bool, err error) {
	has, err := a.mayBindPeer(ctx, b)
	if err != nil {
		return false, err
	}
	n, who := a.node, a.Principal()
	claimed := b.Proven == 0
	if claimed && (!who.Unverified || has != nil && has.Proven != 0) {
		return has != nil && (!has.Claimed || who.Unverified) && has.Tenant == who.Tenant && has.Agent == b.Agent, nil
	}
	by, err := vouch(boundAs, who)
	if err != nil {
		return false, agora.AsError(err)
	}
	is := presence.Bound{Tenant: who.Tenant, Agent: b.Agent, By: by, Proven: b.Proven, Claimed: claimed}
	err = n.cfg.Presence.Peers.Bind(ctx, b.Peer, is, cmp.Or(b.Lasts, n.cfg.Register))
	return err == nil, asError(err)
}

// UnbindPeer has a peer speak as nobody any more, where it is bound to the agent. FORBIDDEN where the actor may not be
// that, UNAUTHORIZED, UNAVAILABLE.
func (a *Actor) UnbindPeer(ctx context.Context, peer string, id agora.AgentID) error {
	if err := errors.Join(a.Check(), a.mayBe(id)); err != nil {
		return agora.AsError(err)
	}
	found, err := a.node.cfg.Presence.Peers.Find(ctx, peer)
	if err != nil {
		return agora.AsError(err)
	}
	if b := found.Bound; b == nil || b.Tenant != a.Principal().Tenant || b.Agent != id {
		return nil
	}
	return asError(a.node.cfg.Presence.Peers.Unbind(ctx, peer))
}

// OfPeer returns who speaks when a peer does, and as which agent: by whom it is bound; without authentication everybody
// is who it says, an unbound peer an agent of its own id, and so does one that the operator allows with it. found is
// what presence knows of the peer. UNAUTHORIZED where it is nobody's, or what was granted to who has bound it does not
// stand any more.
func (n *Node) OfPeer(ctx context.Context, peer string, found presence.Peer, allowed bool) (*Actor, agora.AgentID, error) {
	as := agora.AgentID(peer)
	if p := n.credentials.unverified(ctx); p != nil {
		if found.Bound != nil {
			as = found.Bound.Agent
		}
		return n.actor(p), as, nil
	}
	bound := found.Agent()
	if bound == nil && allowed {
		return n.actor(&Principal{Name: "p2p.allow/" + peer, Tenant: agora.DefaultTenant, Agents: []string{peer}}), as, nil
	}
	if bound == nil {
		return nil, "", unboundPeer(peer)
	}
	_, who, err := readVouched(bound.By)
	if err != nil {
		return nil, "", agora.Errorf(agora.Unauthorized, "an edge of another version has bound peer %q", peer)
	}
	if who.Any && who.Name == "" && who.Source == "" { // it was bound while there was no authentication
		return nil, "", agora.Errorf(agora.Unauthorized, "peer %q is bound by nobody in particular: register it again", peer)
	}
	a := n.actor(who)
	if err := errors.Join(a.Check(), a.mayBe(bound.Agent)); err != nil {
		return nil, "", agora.AsError(err)
	}
	return a, bound.Agent, nil
}

func unboundPeer(peer string) error {
	return agora.Errorf(agora.Unauthorized, "peer %q is bound to no agent: register it with a proof by its key", peer)
}

// LetsPeer asks whether a peer may speak to an agent that the actor may be, as by a message of the agent that the peer
// speaks as. why is nil where it may, and says else why not; found and allowed are those of OfPeer. FORBIDDEN where the
// actor may not be the agent, UNAUTHORIZED, RATE_LIMITED.
func (a *Actor) LetsPeer(ctx context.Context, peer string, found presence.Peer, allowed bool, to agora.AgentID) (why, err error) {
	if err := errors.Join(a.Check(), a.mayBe(to), a.quota.Spend(0)); err != nil {
		return nil, agora.AsError(err)
	}
	who, _, why := a.node.OfPeer(ctx, peer, found, allowed)
	switch {
	case why != nil:
		return why, nil
	case who.Principal().Tenant != a.Principal().Tenant:
		return unboundPeer(peer), nil // whose it is elsewhere is nobody's to know here
	}
	return who.MayAddress(to), nil
}

// Unverified reports whether nobody is asked who they are: there is no authentication.
func (n *Node) Unverified(ctx context.Context) bool { return n.credentials.unverified(ctx) != nil }
