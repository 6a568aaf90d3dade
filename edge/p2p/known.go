package p2p

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/presence"
)

const (
	freshTime  = time.Second // for so long what was found is not asked for again
	knownTime  = time.Minute // for so long it stands while presence is away
	mostKnown  = 4096        // peers that are kept in mind
	answerTime = 3 * time.Second
)

// known is what presence knows of peers, as it was found of late.
type known struct {
	*shared

	mu    sync.Mutex // guards the field below
	peers map[peer.ID]finding
}

type finding struct {
	presence.Peer
	at time.Time
}

// find returns what presence knows of a peer: found up to a second ago, or up to a minute ago while presence is away. UNAVAILABLE beyond.
func (k *known) find(ctx context.Context, p peer.ID) (presence.Peer, error) {
	k.mu.Lock()
	last, has := k.peers[p]
	k.mu.Unlock()
	if has && time.Since(last.at) < freshTime {
		return last.Peer, nil
	}
	return k.look(ctx, p)
}

// look is find that asks presence in any case.
func (k *known) look(ctx context.Context, p peer.ID) (presence.Peer, error) {
	ask, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	found, err := k.node.Config().Presence.Peers.Find(ask, p.String())
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		if last, has := k.peers[p]; has && time.Since(last.at) < knownTime {
			return last.Peer, nil
		}
		return presence.Peer{}, agora.AsError(err)
	}
	if k.peers == nil {
		k.peers = map[peer.ID]finding{}
	}
	k.peers[p] = finding{found, time.Now()}
	for other, f := range k.peers {
		if len(k.peers) <= mostKnown && time.Since(f.at) < knownTime {
			break // those that are older are found as more come
		}
		if other != p {
			delete(k.peers, other)
		}
	}
	return found, nil
}

// forget drops what was found of a peer.
func (k *known) forget(p peer.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.peers, p)
}

// speaker returns who speaks when a peer does, and as which agent. Errors are those of [edge.Node.OfPeer].
func (k *known) speaker(ctx context.Context, p peer.ID) (*edge.Actor, agora.AgentID, error) {
	found, err := k.find(ctx, p)
	if err != nil {
		return nil, "", err
	}
	return k.node.OfPeer(ctx, p.String(), found, k.allowed(p))
}

// allowed reports whether the operator has allowed a peer that nobody has bound.
func (k *known) allowed(p peer.ID) bool {
	return slices.Contains(k.cfg.Allow, p)
}

// mayRelay returns the tenant of a peer that may use the relay; an empty one where nobody is asked who they are. UNAUTHORIZED, FORBIDDEN, UNAVAILABLE.
func (k *known) mayRelay(ctx context.Context, p peer.ID) (tenant string, err error) {
	if k.node.Unverified(ctx) {
		return "", nil
	}
	a, _, err := k.speaker(ctx, p)
	if err != nil {
		return "", err
	}
	return a.Principal().Tenant, a.MayRelay()
}

// mayConnect returns nil where a peer may be connected with another one, which is of its tenant. UNAUTHORIZED, FORBIDDEN, AGENT_NOT_FOUND, UNAVAILABLE.
func (k *known) mayConnect(ctx context.Context, from, to peer.ID) error {
	tenant, err := k.mayRelay(ctx, from)
	if err != nil || tenant == "" {
		return err
	}
	found, err := k.find(ctx, to)
	switch {
	case err != nil:
		return err
	case k.ofTenant(to, &found, tenant):
		return nil
	}
	return agora.Errorf(agora.AgentNotFound, "there is no peer %s", to) // whoever may not see it hears no more
}

// ofTenant reports whether a peer is of a tenant, where everybody is asked who they are.
func (k *known) ofTenant(p peer.ID, found *presence.Peer, tenant string) bool {
	is := k.agentOf(p, found)
	return is != nil && is.Tenant == tenant
}

// agentOf returns which agent a peer is, where everybody is asked who they are; nil for none. One that the operator allows is an agent of its own id where nobody has bound it.
func (k *known) agentOf(p peer.ID, found *presence.Peer) *presence.Bound {
	if b := found.Agent(); b != nil || !k.allowed(p) {
		return b
	}
	return &presence.Bound{Tenant: agora.DefaultTenant, Agent: agora.AgentID(p.String())}
}
