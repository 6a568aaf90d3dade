package edge

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Peers of libp2p show by their key which peer they are, and no credentials. Who has some binds a peer to an agent: the peer then speaks as that agent, by what the
// credentials allow.

// boundAs is the dialect under which it is written down for whom a peer speaks.
const boundAs = "p2p"

// MayBindPeer returns nil where the actor may have a peer speak as an agent: FORBIDDEN where it may not be the agent, or another principal has bound the peer; UNAUTHORIZED, UNAVAILABLE.
func (a *Actor) MayBindPeer(ctx context.Context, peer string, id agora.AgentID) error {
	if err := errors.Join(a.Check(), a.mayBe(id)); err != nil {
		return agora.AsError(err)
	}
	who := a.Principal()
	found, err := a.node.cfg.Presence.FindPeer(ctx, peer)
	if err != nil {
		return agora.AsError(err)
	}
	if found.Bound == nil || who.Unverified {
		return nil
	}
	_, by, err := readVouched(found.Bound.By)
	if err == nil && (by.Name != who.Name || by.Tenant != who.Tenant) {
		return agora.Errorf(agora.Forbidden, "peer %q belongs to someone else", peer)
	}
	return nil
}

// BindPeer has a peer speak as an agent, for as long as lasts: 0 stands for Config.Register. A peer speaks as one agent at a time. Errors are those of MayBindPeer.
func (a *Actor) BindPeer(ctx context.Context, peer string, id agora.AgentID, lasts time.Duration) error {
	if err := a.MayBindPeer(ctx, peer, id); err != nil {
		return err
	}
	n, who := a.node, a.Principal()
	by, err := vouch(boundAs, who)
	if err != nil {
		return agora.AsError(err)
	}
	b := presence.Bound{Tenant: who.Tenant, Agent: id, By: by}
	return asError(n.cfg.Presence.Bind(ctx, peer, b, cmp.Or(lasts, n.cfg.Register)))
}

// UnbindPeer has a peer speak as nobody any more, where it is bound to the agent. FORBIDDEN where the actor may not be that, UNAUTHORIZED, UNAVAILABLE.
func (a *Actor) UnbindPeer(ctx context.Context, peer string, id agora.AgentID) error {
	if err := errors.Join(a.Check(), a.mayBe(id)); err != nil {
		return agora.AsError(err)
	}
	found, err := a.node.cfg.Presence.FindPeer(ctx, peer)
	if err != nil {
		return agora.AsError(err)
	}
	if b := found.Bound; b == nil || b.Tenant != a.Principal().Tenant || b.Agent != id {
		return nil
	}
	return asError(a.node.cfg.Presence.Unbind(ctx, peer))
}

// OfPeer returns who speaks when a peer does, and as which agent: by whom it is bound; without authentication everybody is who it says, an unbound peer an agent
// of its own id, and so does one that the operator allows with it. found is what presence knows of the peer. UNAUTHORIZED where it is nobody's, or what was granted to who has bound it
// does not stand any more.
func (n *Node) OfPeer(ctx context.Context, peer string, found presence.Peer, allowed bool) (*Actor, agora.AgentID, error) {
	as := agora.AgentID(peer)
	if found.Bound != nil {
		as = found.Bound.Agent
	}
	if p := n.credentials.unverified(ctx); p != nil {
		return n.actor(p), as, nil
	}
	if found.Bound == nil && allowed {
		return n.actor(&Principal{Name: "p2p.allow/" + peer, Tenant: agora.DefaultTenant, Agents: []string{peer}}), as, nil
	}
	if found.Bound == nil {
		return nil, "", agora.Errorf(agora.Unauthorized, "peer %q is bound to no agent: register it", peer)
	}
	_, who, err := readVouched(found.Bound.By)
	if err != nil {
		return nil, "", agora.Errorf(agora.Unauthorized, "an edge of another version has bound peer %q", peer)
	}
	a := n.actor(who)
	if err := errors.Join(a.Check(), a.mayBe(as)); err != nil {
		return nil, "", agora.AsError(err)
	}
	return a, as, nil
}

// Unverified reports whether nobody is asked who they are: there is no authentication.
func (n *Node) Unverified(ctx context.Context) bool { return n.credentials.unverified(ctx) != nil }
