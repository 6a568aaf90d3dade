package p2p

import (
	"context"
	"net/http"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/web"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// mayBelong returns nil where an agent may register with a peer id: FORBIDDEN where it is that of an edge, or is known
// to be derived of an agent's id. What is not known here as one of those has a key that no agent has: nobody can prove
// to be it.
func (g *registry) mayBelong(ctx context.Context, id peer.ID) error {
	if id == g.host.ID() || g.relays.isEdge(ctx, id, false) {
		return agora.Errorf(agora.Forbidden, "peer %s is an edge of this cluster", id)
	}
	if g.derived.has(id) {
		return agora.Errorf(agora.Forbidden, "peer %s is an agent of this cluster, by the cluster's key", id)
	}
	return nil
}

// prove returns when the peer of a registration has said by its key that it is to speak as the agent, in milliseconds
// since 1970; 0 where the registration says nothing of that. INVALID_REQUEST for what is no proof, FORBIDDEN for one
// that does not hold.
func (g *registry) prove(x *web.Exchange, r *registration, id peer.ID) (int64, error) {
	if r.Proof == nil || string(r.Proof) == "null" {
		return 0, nil
	}
	p, err := wire.ReadProof(r.Proof)
	if err != nil {
		return 0, err
	}
	now := g.node.Config().Broker.Now()
	if late := now.Sub(time.UnixMilli(p.Time)); late.Abs() > wire.BindingSkew {
		return 0, agora.Errorf(agora.Forbidden, "proof.time is not now, which is %d", now.UnixMilli())
	}
	if !g.ofThisCluster(x.Context(), p.Edge) {
		return 0, agora.Errorf(agora.Forbidden, "proof.edge is no edge of this cluster")
	}
	b := wire.Binding{Tenant: x.Actor.Principal().Tenant, Agent: r.AgentName, Edge: p.Edge, Peer: id.String(), Time: p.Time}
	if !signed(id, &p, b.Statement()) {
		return 0, agora.Errorf(agora.Forbidden, "proof.signature is not by the key of peer %s over tenant %q, agent %q, proof.edge and proof.time", id, b.Tenant, b.Agent)
	}
	return p.Time, nil
}

// ofThisCluster reports whether a peer id is that of an edge of the cluster, as it is written here.
func (g *registry) ofThisCluster(ctx context.Context, text string) bool {
	id, err := peer.Decode(text)
	return err == nil && id.String() == text && (id == g.host.ID() || g.relays.isEdge(ctx, id, true))
}

// signed reports whether a statement is signed by the key of a peer.
func signed(id peer.ID, p *wire.Proof, statement []byte) bool {
	key, err := id.ExtractPublicKey()
	if err != nil { // the id is but a hash of the key
		key, err = crypto.UnmarshalPublicKey(p.PublicKey)
	}
	if err != nil || !id.MatchesPublicKey(key) {
		return false
	}
	good, err := key.Verify(statement, p.Signature)
	return err == nil && good
}

// access is the answer to GET /p2p/access.
type access struct {
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"` // it is not
}

// askAccess answers whether a peer may speak to an agent that the caller may be: for those who serve peers themselves
// beside that agent.
func (g *registry) askAccess(x *web.Exchange) error {
	q, err := x.Query("peer_id", "agent_name")
	if err != nil {
		return err
	}
	id, err := peer.Decode(q.Get("peer_id"))
	if err != nil {
		return agora.Errorf(agora.InvalidRequest, "peer_id is no peer id")
	}
	to, err := agora.ParseOwnID(q.Get("agent_name"))
	if err != nil {
		return err
	}
	found, err := g.peers.find(x.Context(), id)
	if err != nil {
		return err
	}
	why, err := x.Actor.LetsPeer(x.Context(), id.String(), found, g.peers.allowed(id), to)
	if err != nil {
		return err
	}
	if why != nil {
		return x.Answer(http.StatusOK, access{Why: agora.AsError(why).Message})
	}
	return x.Answer(http.StatusOK, access{Allowed: true})
}
