package aip

import (
	"context"
	"errors"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/aip"
)

// maxWatched is how many nodes a subscription may name.
const maxWatched = 4096

// errUnsubscribed is why a subscription ends as its subscriber wants.
var errUnsubscribed = errors.New("unsubscribed")

// subscription is what one stream tells a subscriber of.
type subscription struct {
	by     agora.Address // the subscriber
	cancel context.CancelCauseFunc

	mu   sync.Mutex                 // guards the fields below
	only map[agora.AgentID]struct{} // nil: of all
	but  map[agora.AgentID]struct{} // and not of these, where it is of all
}

// subscribes returns the subscription that a caller asks for.
func subscribes(c *caller, in *aip.UpdateSubscriptionRequest) (*subscription, error) {
	by, err := c.speaks(in.GetSubscriberId())
	if err != nil {
		return nil, err
	}
	ids, err := nodeIDs(in.GetNodeIds())
	if err != nil {
		return nil, err
	}
	s := &subscription{by: agora.ToAgent(c.actor.Principal().Tenant, by)}
	if len(ids) > 0 {
		s.only = make(map[agora.AgentID]struct{}, len(ids))
	}
	for _, id := range ids {
		s.only[id] = struct{}{}
	}
	return s, nil
}

// nodeIDs returns the ids of nodes.
func nodeIDs(named []string) ([]agora.AgentID, error) {
	if len(named) > maxWatched {
		return nil, agora.Errorf(agora.InvalidRequest, "node_ids has more than %d entries", maxWatched)
	}
	ids := make([]agora.AgentID, len(named))
	for i, name := range named {
		id, err := agora.ParseAgentID(name)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

// wants reports whether the subscriber wants to be told of a node.
func (s *subscription) wants(id agora.AgentID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, named := s.only[id]
	_, left := s.but[id]
	return named || s.only == nil && !left
}

// leave has the subscription tell of some nodes no more, of none where ids is empty. One that tells of none ends.
func (s *subscription) leave(ids []agora.AgentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.only != nil {
			delete(s.only, id)
			continue
		}
		if s.but == nil {
			s.but = map[agora.AgentID]struct{}{}
		}
		if len(s.but) < maxWatched { // more nobody leaves out: the subscriber ignores what it does not want
			s.but[id] = struct{}{}
		}
	}
	if len(ids) == 0 || s.only != nil && len(s.only) == 0 {
		s.cancel(errUnsubscribed)
	}
}

// subscribers are the subscriptions of an edge. The zero value is ready to use.
type subscribers struct {
	mu  sync.Mutex // guards the field below
	all map[agora.Address]map[*subscription]struct{}
}

// enter takes a subscription in. The context that it returns ends when that does; leave is to be called then.
func (a *subscribers) enter(ctx context.Context, s *subscription) (_ context.Context, leave func()) {
	ctx, s.cancel = context.WithCancelCause(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[agora.Address]map[*subscription]struct{}{}
	}
	if a.all[s.by] == nil {
		a.all[s.by] = map[*subscription]struct{}{}
	}
	a.all[s.by][s] = struct{}{}
	return ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if delete(a.all[s.by], s); len(a.all[s.by]) == 0 {
			delete(a.all, s.by)
		}
		s.cancel(nil)
	}
}

// leave has all subscriptions of a subscriber here tell of some nodes no more, and reports whether there are any.
func (a *subscribers) leave(by agora.Address, ids []agora.AgentID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := range a.all[by] {
		s.leave(ids)
	}
	return len(a.all[by]) > 0
}

// Unsubscribe implements the protocol's method: the subscriber's streams, at every edge, tell of some nodes no more,
// and end where they tell of none.
func (g gateway) Unsubscribe(ctx context.Context, in *aip.UnsubscribeRequest) (*aip.UnsubscribeResponse, error) {
	c := callerOf(ctx)
	id, err := c.speaks(in.GetSubscriberId())
	if err == nil {
		err = c.actor.SpendBeside(id)
	}
	if err != nil {
		return nil, err
	}
	ids, err := nodeIDs(in.GetNodeIds())
	if err != nil {
		return nil, err
	}
	by := agora.ToAgent(c.actor.Principal().Tenant, id)
	found := g.subscribers.leave(by, ids)
	there, err := g.askPeers(ctx, peerQuestion{Verb: leaveVerb, By: by, Nodes: ids})
	if err != nil {
		return nil, err
	}
	if !found && !there {
		return &aip.UnsubscribeResponse{Message: "Subscriber " + string(id) + " has no subscription"}, nil
	}
	return &aip.UnsubscribeResponse{Success: true, Message: "Unsubscribed"}, nil
}
