package aip

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire/aip"
)

// SubscribeToUpdates implements the protocol's method: what is there now comes as ADDED first, and then what changes.
// So the one who asks for the nodes and subscribes, in whatever order, misses none.
func (g gateway) SubscribeToUpdates(in *aip.UpdateSubscriptionRequest, out grpc.ServerStreamingServer[aip.NodeUpdate]) error {
	c := callerOf(out.Context())
	s, err := subscribes(c, in)
	if err != nil {
		return err
	}
	by := c.actor.Owner(s.by.Agent)
	if err := g.node.Usage().Take(admission.Subscriptions, by, 1); err != nil {
		return err
	}
	defer g.node.Usage().Give(admission.Subscriptions, by, 1)
	watch, err := c.actor.Directory().Watch(out.Context())
	if err != nil {
		return err
	}
	defer watch.Close()
	ctx, leave := g.subscribers.enter(out.Context(), s)
	defer leave()
	g.interceptor.active.watch(c)
	if err := out.SendHeader(nil); err != nil { // from here on it stands
		return err
	}
	f := &feed{catalog: g.catalog, subscription: s, caller: c, out: out, path: aip.PathOf(ctx), told: map[agora.AgentID]uint64{}, seed: maphash.MakeSeed()}
	for {
		changes, err := watch.Next(ctx)
		if err == nil {
			err = f.tell(ctx, changes)
		}
		if err == nil {
			continue
		}
		if errors.Is(context.Cause(ctx), errUnsubscribed) {
			return nil
		}
		return err
	}
}

// feed is what a subscriber is told by one stream.
type feed struct {
	*subscription
	catalog *catalog
	caller  *caller
	out     grpc.ServerStreamingServer[aip.NodeUpdate]
	path    []string // through which gateways the subscriber asks
	told    map[agora.AgentID]uint64
	seed    maphash.Seed
}

// tell tells of changes that the subscriber is to hear of: of each node once how it is, and that it is gone. It blocks
// while the subscriber does not read.
func (f *feed) tell(ctx context.Context, changes []directory.Change) error {
	var cards []agora.Agent
	for i := range changes {
		if c := &changes[i]; c.Kind != directory.Removed && f.wants(c.Agent.ID) {
			cards = append(cards, c.Agent)
		}
	}
	now, err := f.whole(ctx, cards)
	if err != nil {
		return err
	}
	for i := range changes {
		id := changes[i].Agent.ID
		if !f.wants(id) {
			delete(f.told, id)
			continue
		}
		if u := f.update(id, now[id]); u != nil {
			if err := f.out.Send(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole returns cards completed, but for those that are gone, by their ids. It waits while presence can't be asked.
func (f *feed) whole(ctx context.Context, cards []agora.Agent) (map[agora.AgentID]*agora.Agent, error) {
	for {
		all, err := f.catalog.whole(ctx, f.caller, slices.Clone(cards))
		if err == nil {
			now := make(map[agora.AgentID]*agora.Agent, len(all))
			for i := range all {
				now[all[i].ID] = &all[i]
			}
			return now, nil
		}
		code := agora.AsError(err).Code
		if code != agora.Unavailable && code != agora.RateLimited || !pause.For(ctx, time.Second) {
			return nil, err
		}
	}
}

// update returns what the subscriber is to be told of a node that is as a card says, or gone where that is nil; nil for
// nothing new.
func (f *feed) update(id agora.AgentID, card *agora.Agent) *aip.NodeUpdate {
	was, known := f.told[id]
	var p *aip.Peer
	if card != nil {
		p = f.catalog.peerOf(card, f.path)
	}
	if p == nil {
		delete(f.told, id)
		if !known {
			return nil
		}
		return &aip.NodeUpdate{UpdateType: aip.NodeUpdate_REMOVED, NodeId: string(id)}
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	is := maphash.Bytes(f.seed, b)
	if err != nil || known && is == was {
		return nil
	}
	f.told[id] = is
	u := &aip.NodeUpdate{UpdateType: aip.NodeUpdate_ADDED, NodeId: string(id), Peer: p}
	if known {
		u.UpdateType = aip.NodeUpdate_UPDATED
	}
	return u
}
