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
	mostKnown  = 4096        // peers that are kept in mind, and as many that are nobody
	mostAsked  = 4           // times within freshTime that presence is asked for a peer that is nobody: it may be bound by now, at another edge
	answerTime = 3 * time.Second
)

// known is what presence knows of peers, as it was found recently. Those that are nobody are kept apart: however many
// come, they push out none that is somebody.
type known struct {
	*shared

	mu     sync.Mutex // guards the fields below
	peers  map[peer.ID]finding
	nobody map[peer.ID]finding
}

type finding struct {
	presence.Peer
	at    time.Time
	since time.Time // presence was asked for the first time of those that asked counts
	asked int
}

// is reports whether a peer is somebody: bound to an agent, or with a place at an edge.
func (f *finding) is() bool { return f.Bound != nil || len(f.At) > 0 }

// find returns what presence knows of a peer: found up to a second ago, or up to a minute ago while presence is away.
// UNAVAILABLE beyond. That a peer is nobody is asked again a few times a second.
func (k *known) find(ctx context.Context, p peer.ID) (presence.Peer, error) {
	last, has := k.last(p)
	fresh := has && time.Since(last.at) < freshTime
	if fresh && (last.Agent() != nil || last.asked >= mostAsked || k.node.Unverified(ctx)) {
		return last.Peer, nil
	}
	return k.look(ctx, p)
}

// last returns what was found of a peer.
func (k *known) last(p peer.ID) (finding, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastLocked(p)
}

func (k *known) lastLocked(p peer.ID) (finding, bool) {
	if last, has := k.peers[p]; has {
		return last, true
	}
	last, has := k.nobody[p]
	return last, has
}

// look is find that asks presence in any case.
func (k *known) look(ctx context.Context, p peer.ID) (presence.Peer, error) {
	ask, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	found, err := k.node.Config().Presence.Peers.Find(ask, p.String())
	k.mu.Lock()
	defer k.mu.Unlock()
	last, has := k.lastLocked(p)
	if err != nil {
		if has && time.Since(last.at) < knownTime {
			return last.Peer, nil
		}
		return presence.Peer{}, agora.AsError(err)
	}
	f := finding{Peer: found, at: time.Now(), since: last.since, asked: last.asked + 1}
	if f.at.Sub(f.since) > freshTime {
		f.since, f.asked = f.at, 1
	}
	k.forgetLocked(p)
	if f.is() {
		k.peers = keep(k.peers, p, f)
	} else {
		k.nobody = keep(k.nobody, p, f)
	}
	return found, nil
}

// keep keeps what was found, and drops what is old, or was found of others where that is too much.
func keep(all map[peer.ID]finding, p peer.ID, f finding) map[peer.ID]finding {
	if all == nil {
		all = map[peer.ID]finding{}
	}
	all[p] = f
	for other, f := range all {
		if len(all) <= mostKnown && time.Since(f.at) < knownTime {
			break // those that are older are found as more come
		}
		if other != p {
			delete(all, other)
		}
	}
	return all
}

// forget drops what was found of a peer.
func (k *known) forget(p peer.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked(p)
}

func (k *known) forgetLocked(p peer.ID) {
	delete(k.peers, p)
	delete(k.nobody, p)
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

// mayRelay returns who speaks when a peer does that may use the relay; nil where nobody is asked who they are. It
// counts as what the peer asks. UNAUTHORIZED, FORBIDDEN, RATE_LIMITED, UNAVAILABLE.
func (k *known) mayRelay(ctx context.Context, p peer.ID) (*edge.Actor, error) {
	if k.node.Unverified(ctx) {
		return nil, nil
	}
	a, as, err := k.speaker(ctx, p)
	if err == nil {
		err = a.SpendBeside(as)
	}
	if err != nil {
		return nil, err
	}
	return a, a.MayRelay()
}

// mayConnect is mayRelay for a peer that is to be connected with another one: AGENT_NOT_FOUND where that is not of its
// tenant.
func (k *known) mayConnect(ctx context.Context, from, to peer.ID) (*edge.Actor, error) {
	a, err := k.mayRelay(ctx, from)
	if err != nil || a == nil {
		return a, err
	}
	tenant := a.Principal().Tenant
	found, err := k.find(ctx, to)
	switch {
	case err != nil:
		return a, err
	case k.ofTenant(to, &found, tenant):
		return a, nil
	}
	return a, agora.Errorf(agora.AgentNotFound, "there is no peer %s", to) // whoever may not see it hears no more
}

// ofTenant reports whether a peer is of a tenant, where everybody is asked who they are.
func (k *known) ofTenant(p peer.ID, found *presence.Peer, tenant string) bool {
	is := k.agentOf(p, found)
	return is != nil && is.Tenant == tenant
}

// agentOf returns which agent a peer is, where everybody is asked who they are; nil for none. One that the operator
// allows is an agent of its own id where nobody has bound it.
func (k *known) agentOf(p peer.ID, found *presence.Peer) *presence.Bound {
	if b := found.Agent(); b != nil || !k.allowed(p) {
		return b
	}
	return &presence.Bound{Tenant: agora.DefaultTenant, Agent: agora.AgentID(p.String())}
}
