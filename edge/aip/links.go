package aip

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// links are the cluster's links to gateways of others, as one edge sees them: of each, one edge at a time has the nodes.
type links struct {
	door *Door
	wake chan struct{} // holds one token when there is something to look at

	mu       sync.Mutex // guards the fields below
	known    []presence.Link
	held     map[place]*link // those that this edge holds, or has not let go of yet
	made     bool            // those of the settings stand
	draining bool
}

func (l *links) init(d *Door) {
	l.door, l.wake, l.held = d, make(chan struct{}, 1), map[place]*link{}
}

// Link states, as a LinkView has them.
const (
	LinkUp         = "up"         // nodes come by subscription
	LinkPolling    = "polling"    // the gateway takes no subscriptions: it is asked again and again
	LinkConnecting = "connecting" // it has not been reached yet
	LinkDown       = "down"       // it can't be reached now, or refuses: its nodes stay as they were
	LinkWaiting    = "waiting"    // no edge holds it at the moment
	LinkEnding     = "ending"     // it was ended, and its nodes are being taken out
)

// LinkView is how a link stands, for operators.
type LinkView struct {
	Address string    `json:"address"`
	Tenant  string    `json:"tenant"`
	Since   time.Time `json:"since"`
	State   string    `json:"state"` // one of those above
	Edge    string    `json:"edge,omitempty"`
	Offered int       `json:"offered"`         // nodes that the gateway offers
	Nodes   int       `json:"nodes"`           // those of them that are reached by the link; an id that is here, or an older link's, is not
	Error   string    `json:"error,omitempty"` // what went wrong last
}

// linkState is what the edge that holds a link says of it.
type linkState struct {
	State   string `json:"state"`
	Offered int    `json:"offered,omitempty"`
	Nodes   int    `json:"nodes,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Link links the cluster to the gateway at an address, for a tenant; the default one if that is empty. Its nodes come in the background, by this edge if it may. A link that stands
// stays as it is. INVALID_REQUEST for an address that is none, FORBIDDEN where it may not be dialled, UNAVAILABLE.
func (d *Door) Link(ctx context.Context, tenant, address string) error {
	address, err := dial.Canonical(address)
	if err != nil {
		return err
	}
	if err := d.channels.dialer.Check(ctx, address); err != nil && agora.AsError(err).Code != agora.Unavailable {
		return err
	}
	p := d.node.Config().Presence
	if _, _, err := p.MakeLink(ctx, cmp.Or(tenant, agora.DefaultTenant), address, d.node.Config().Broker.Now()); err != nil {
		return err
	}
	d.links.hurry()
	return nil
}

// Links returns how all links stand, of every tenant, the oldest first.
func (d *Door) Links(ctx context.Context) ([]LinkView, error) {
	all, err := d.node.Config().Presence.Links(ctx, d.links.all())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b presence.Link) int { return a.Since.Compare(b.Since) })
	views := make([]LinkView, 0, len(all))
	for i := range all {
		if l := &all[i]; l.Over.IsZero() || l.Holder.Edge != "" {
			views = append(views, viewOf(l))
		}
	}
	return views, nil
}

func viewOf(l *presence.Link) LinkView {
	s := linkState{State: LinkWaiting}
	if l.Holder.Edge != "" && json.Unmarshal([]byte(l.State), &s) != nil {
		s.State = LinkConnecting
	}
	if !l.Over.IsZero() {
		s.State = LinkEnding
	}
	return LinkView{
		Address: l.Address, Tenant: l.Tenant, Since: l.Since.UTC(), State: s.State, Edge: l.Holder.Edge, Offered: s.Offered, Nodes: s.Nodes, Error: s.Error,
	}
}

// Unlink ends a link, and returns when its nodes are gone, or soon will be. NOT_FOUND where there is none, UNAVAILABLE.
func (d *Door) Unlink(ctx context.Context, tenant, address string) error {
	address, err := dial.Canonical(address)
	if err != nil {
		return err
	}
	tenant = cmp.Or(tenant, agora.DefaultTenant)
	is, err := d.node.Config().Presence.EndLink(ctx, tenant, address)
	if err != nil {
		return err
	}
	if !is {
		return agora.Errorf(agora.NotFound, "there is no link to %q", address)
	}
	d.links.hurry()
	if _, err := d.askPeers(ctx, peerQuestion{Verb: linkVerb}); err != nil {
		d.cfg.Log.Debug("other edges were not told that a link is over, and see it soon", "err", err)
	}
	ctx, cancel := context.WithTimeout(ctx, clearTime)
	defer cancel()
	for pause.For(ctx, 20*time.Millisecond) {
		all, err := d.node.Config().Presence.Links(ctx, nil)
		if err == nil && !slices.ContainsFunc(all, func(l presence.Link) bool {
			return l.Tenant == tenant && l.Address == address && l.Holder.Edge != ""
		}) {
			return nil
		}
	}
	return nil
}

// clearTime bounds how long taking out the nodes of a link is waited for.
const clearTime = 5 * time.Second

// LinkStates counts the links that this edge holds, by their states.
func (d *Door) LinkStates() map[string]int {
	n := map[string]int{}
	for _, k := range d.links.list() {
		n[k.now().State]++
	}
	return n
}

// hurry has the links looked at now.
func (l *links) hurry() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// all returns the links as they were known last.
func (l *links) all() []presence.Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// list returns those that this edge holds.
func (l *links) list() []*link {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*link, 0, len(l.held))
	for _, k := range l.held {
		all = append(all, k)
	}
	return all
}

// of returns what this edge holds of a link; nil where it does not.
func (l *links) of(at presence.Link) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[place{at.Tenant, at.Address}]
}

// drain has other edges take over the links of this one.
func (l *links) drain() {
	l.mu.Lock()
	l.draining = true
	l.mu.Unlock()
	l.hurry()
}

// mayHold reports whether this edge is to hold links.
func (l *links) mayHold() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.draining && l.door.cfg.Ready() == nil
}

// run looks at the links until the door is closed, and then lets go of those that this edge holds.
func (l *links) run() {
	every := time.NewTicker(l.every())
	defer every.Stop()
	for l.door.ctx.Err() == nil {
		if err := l.look(l.door.ctx); err != nil && l.door.ctx.Err() == nil {
			l.door.cfg.Log.Debug("links were not looked at", "err", err)
		}
		select {
		case <-every.C:
		case <-l.wake:
		case <-l.door.ctx.Done():
		}
	}
	for _, k := range l.list() {
		k.leave(false)
	}
}

// every is the time between two looks, and lasts how long an edge holds a link after one: so another takes it over within a lease.
func (l *links) every() time.Duration {
	return max(min(l.door.node.Config().Lease/10, time.Second), 20*time.Millisecond)
}

func (l *links) lasts() time.Duration { return l.door.node.Config().Lease * 2 / 3 }

// look looks once which links there are, and takes those that nobody holds.
func (l *links) look(ctx context.Context) error {
	if err := l.make(ctx); err != nil {
		return err
	}
	all, err := l.door.node.Config().Presence.Links(ctx, l.all())
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.known = all
	l.mu.Unlock()
	for i := range all {
		if err := l.tend(ctx, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// make makes the links of the settings, once: an operator may end one that every edge has in its settings.
func (l *links) make(ctx context.Context) error {
	l.mu.Lock()
	made := l.made
	l.mu.Unlock()
	if made {
		return nil
	}
	c := l.door.node.Config()
	for _, address := range l.door.cfg.Links {
		at, err := dial.Canonical(address)
		if err != nil {
			l.door.cfg.Log.Error("link of the settings is none", "address", address, "err", err)
			continue
		}
		if _, _, err := c.Presence.MakeLink(ctx, agora.DefaultTenant, at, c.Broker.Now()); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = true
	return nil
}

// tend takes a link, holds it on, or lets go of it.
func (l *links) tend(ctx context.Context, at *presence.Link) error {
	k := l.of(*at)
	switch {
	case k != nil && k.leaves.Load():
		return nil // another look finds it gone
	case k != nil && (!at.Over.IsZero() || !k.Since.Equal(at.Since)):
		k.leave(true)
		return nil
	case k != nil && !l.mayHold():
		k.leave(false)
		return nil
	case k == nil && (!at.Over.IsZero() || at.Holder.Edge != "" || !l.mayHold()):
		return nil
	}
	state := linkState{State: LinkConnecting}
	if k != nil {
		state = k.now()
	}
	b, err := json.Marshal(state)
	if err != nil {
		return err
	}
	holds, err := l.door.node.HoldLink(ctx, *at, l.lasts(), string(b))
	switch {
	case err != nil:
		return err
	case k == nil && holds:
		l.begin(*at)
	case k != nil && !holds:
		k.leave(false)
	}
	return nil
}

// begin has this edge bring the nodes of a link here.
func (l *links) begin(at presence.Link) {
	k := newLink(l.door, at)
	l.mu.Lock()
	l.held[place{at.Tenant, at.Address}] = k
	l.mu.Unlock()
	l.door.cfg.Log.Info("edge holds the link to a gateway", "address", at.Address, "tenant", at.Tenant)
	k.work.Go(k.run)
}

// end forgets a link that this edge has let go of.
func (l *links) end(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, place{k.Tenant, k.Address})
}
