package aip

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"sync"

	"google.golang.org/grpc"

	wire "github.com/agora-relay/agora/wire/aip"
)

// mostNodes is how many bytes of nodes a gateway may list, in pages or at once.
const mostNodes = 1 << 30

// UpdatePeers asks the gateway for the nodes of a domain, of all where it is "default" or empty, and remembers them in
// place of those that were known. A gateway that knows pages is asked for them page by page.
func (n *node) UpdatePeers(ctx context.Context, domain string) error {
	ctx, cancel := n.within(ctx)
	defer cancel()
	var peers []*Peer
	_, err := n.gateways.do(ctx, func(ctx context.Context, c wire.GatewayServiceClient) (err error) {
		peers, err = n.list(ctx, c, domain)
		return err
	})
	if err != nil {
		return n.why(err)
	}
	n.learn(peers)
	return nil
}

// list asks a gateway for the nodes of a domain.
func (n *node) list(ctx context.Context, c wire.GatewayServiceClient, domain string) ([]*Peer, error) {
	return wire.AllNodes(ctx, c, &wire.GetNodesRequest{AgentId: n.cfg.ID, Domain: domain}, mostNodes)
}

// Nodes returns the nodes that this one was told of by UpdatePeers, or as it registered, by their ids.
func (n *node) Nodes() map[string]*Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.peers)
}

// learn remembers nodes in place of those that were known.
func (n *node) learn(peers []*Peer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.peers = byID(peers)
}

func byID(peers []*Peer) map[string]*Peer {
	all := make(map[string]*Peer, len(peers))
	for _, p := range peers {
		if id := wire.IDOf(p); id != "" {
			all[id] = p
		}
	}
	return all
}

// Subscription is what a gateway says of changes of nodes, as they come.
type Subscription struct {
	node    *node
	stream  grpc.ServerStreamingClient[NodeUpdate]
	channel *channel
	cancel  context.CancelFunc
	once    sync.Once
}

// Subscribe has the gateway tell of changes of nodes: those with the ids, all of them where none is given. The caller
// owes the subscription a call of Close.
func (n *node) Subscribe(ctx context.Context, ids ...string) (*Subscription, error) {
	ctx, cancel := n.within(ctx)
	c, _, err := n.gateways.pick(ctx)
	if err != nil {
		cancel()
		return nil, n.why(err)
	}
	s := &Subscription{node: n, channel: c, cancel: cancel}
	if s.stream, err = n.gateways.client(c).SubscribeToUpdates(ctx, &wire.UpdateSubscriptionRequest{SubscriberId: n.cfg.ID, NodeIds: ids}); err != nil {
		s.Close()
		return nil, n.why(err)
	}
	return s, nil
}

// Begun blocks until the gateway has said that it watches the nodes: what changes from now on comes. A gateway of
// another make may say so with the first change only.
func (s *Subscription) Begun() error {
	if _, err := s.stream.Header(); err != nil {
		return s.node.why(err)
	}
	return nil
}

// Updates returns the changes, in order for each node, as they come. It ends without an error where the gateway ends
// the subscription, as after Unsubscribe, else with the status. Nothing is known then of what has changed since:
// UpdatePeers asks for it.
func (s *Subscription) Updates() iter.Seq2[*NodeUpdate, error] {
	return func(yield func(*NodeUpdate, error) bool) {
		for {
			u, err := s.stream.Recv()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(u, s.node.why(err)) || err != nil {
				return
			}
		}
	}
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() error {
	s.once.Do(func() {
		s.cancel()
		s.node.pool.release(s.channel)
	})
	return nil
}

// Unsubscribe ends what this node has subscribed to, at whichever edge of a cluster: nodes with the ids, everything
// where none is given.
func (n *node) Unsubscribe(ctx context.Context, ids ...string) error {
	ctx, cancel := n.within(ctx)
	defer cancel()
	_, err := n.gateways.do(ctx, func(ctx context.Context, c wire.GatewayServiceClient) error {
		_, err := c.Unsubscribe(ctx, &wire.UnsubscribeRequest{SubscriberId: n.cfg.ID, NodeIds: ids})
		return err
	})
	return n.why(err)
}
