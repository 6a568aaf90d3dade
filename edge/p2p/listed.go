package p2p

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/presence"
)

// Edge is an edge as GET /p2p has it.
type Edge struct {
	ID        string   `json:"edge"`
	PeerID    string   `json:"peer_id"`
	Addresses []string `json:"addresses"`
}

// Edges is the answer to GET /p2p.
type Edges struct {
	Edges    []Edge   `json:"edges"`
	Draining []string `json:"draining,omitempty"` // peer ids of edges that take no more peers, and still hand requests to those that there are
	Tenant   string   `json:"tenant,omitempty"`   // of who asks: a proof names it
	Now      int64    `json:"now,omitempty"`      // the cluster's time, in milliseconds since 1970: a proof names it
	Open     bool     `json:"open,omitempty"`     // nobody is asked who they are: there is no authentication
}

func (g *registry) listEdges(x *web.Exchange) error {
	list := g.list(x.Context())
	who := x.Actor.Principal()
	list.Tenant, list.Open, list.Now = who.Tenant, who.Unverified, g.node.Config().Broker.Now().UnixMilli()
	return x.Answer(http.StatusOK, list)
}

// list returns the edges of the cluster as libp2p reaches them, this one first, and apart from them those that drain.
func (g *registry) list(ctx context.Context) Edges {
	list := Edges{Edges: []Edge{}}
	all := g.edges(ctx)
	for _, e := range all {
		if e.Draining {
			list.Draining = append(list.Draining, e.Peer)
			continue
		}
		list.Edges = append(list.Edges, Edge{e.Holder.Edge, e.Peer, nonNil(e.Addresses)})
	}
	return list
}

// edges returns the edges as they are reached: this one first, the others by name.
func (g *registry) edges(ctx context.Context) []presence.Relay {
	all := []presence.Relay{g.self()}
	for h, e := range g.relays.since(ctx, time.Now()) {
		if h != g.node.Holder() {
			all = append(all, e.told)
		}
	}
	slices.SortFunc(all[1:], func(a, b presence.Relay) int {
		return cmp.Or(strings.Compare(a.Holder.Edge, b.Holder.Edge), strings.Compare(a.Peer, b.Peer))
	})
	return all
}

// open returns the edges that take peers.
func (g *registry) open(ctx context.Context) []presence.Relay {
	return slices.DeleteFunc(g.edges(ctx), func(e presence.Relay) bool { return e.Draining })
}
