package aip

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/presence"
)

// links are the cluster's links to gateways of others, as one edge sees them: of each, one edge at a time has the
// nodes.
type links struct {
	*shared
	channels *channels
	catalog  *catalog
	registry *registry
	wake     chan struct{} // holds one token when there is something to look at

	mu       sync.Mutex // guards the fields below
	known    []presence.Link
	held     map[place]*link // those that this edge holds, or has not let go of yet
	made     bool            // those of the settings stand
	draining bool
}

func newLinks(s *shared, c *channels, l *catalog, n *registry) *links {
	return &links{shared: s, channels: c, catalog: l, registry: n, wake: make(chan struct{}, 1), held: map[place]*link{}}
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
	return l.held[place{tenant: at.Tenant, address: at.Address}]
}

// drain has other edges take over the links of this one.
func (l *links) drain() {
	l.mu.Lock()
	l.draining = true
	l.mu.Unlock()
	l.hurry()
}

// areDraining reports whether other edges are to take over the links of this one.
func (l *links) areDraining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}

// run looks at the links until the door is closed, and then lets go of those that this edge holds.
func (l *links) run() {
	every := time.NewTicker(l.every())
	defer every.Stop()
	for l.ctx.Err() == nil {
		if err := l.look(l.ctx); err != nil && l.ctx.Err() == nil {
			l.cfg.Log.Debug("links were not looked at", "err", err)
		}
		select {
		case <-every.C:
		case <-l.wake:
		case <-l.ctx.Done():
		}
	}
	for _, k := range l.list() {
		k.leave(false)
	}
}

// every is the time between two looks, and lasts how long an edge holds a link after one: so another takes it over
// within a lease.
func (l *links) every() time.Duration {
	return max(min(l.node.Config().Lease/10, time.Second), 20*time.Millisecond)
}

func (l *links) lasts() time.Duration { return l.node.Config().Lease * 2 / 3 }

// look looks once which links there are, and takes those that nobody holds.
func (l *links) look(ctx context.Context) error {
	if err := l.make(ctx); err != nil {
		return err
	}
	all, err := l.node.Config().Presence.Links.List(ctx, l.all())
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.known = all
	l.mu.Unlock()
	var failed []error
	for i := range all {
		failed = append(failed, l.tend(ctx, &all[i]))
	}
	return errors.Join(failed...)
}

// make makes the links of the settings, once: an operator may end one that every edge has in its settings.
func (l *links) make(ctx context.Context) error {
	l.mu.Lock()
	made := l.made
	l.mu.Unlock()
	if made {
		return nil
	}
	c := l.node.Config()
	for _, address := range l.cfg.Links {
		at, err := dial.Canonical(address)
		if err != nil {
			l.cfg.Log.Error("link of the settings is none", "address", address, "err", err)
			continue
		}
		if _, _, err := c.Presence.Links.Make(ctx, agora.DefaultTenant, at, c.Broker.Now()); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = true
	return nil
}

// tend takes a link, holds it on, or lets go of it. An edge that can't serve agents now takes none, and keeps those
// that it has: no other edge may be better off.
func (l *links) tend(ctx context.Context, at *presence.Link) error {
	k := l.of(*at)
	switch {
	case k != nil && k.leaves.Load():
		return nil // another look finds it gone
	case k != nil && (!at.Over.IsZero() || !k.Since.Equal(at.Since)):
		k.leave(true)
		return nil
	case k != nil && l.areDraining():
		k.leave(false)
		return nil
	case k == nil && (!at.Over.IsZero() || l.areDraining() || l.cfg.Ready() != nil):
		return nil
	case k == nil && at.Holder.Edge != "" && at.Holder.Edge != l.node.Config().ID: // else the answer was lost by which this edge would know
		return nil
	}
	return l.hold(ctx, at, k)
}

// hold has this edge hold a link, of which k is what it holds already; nil for nothing.
func (l *links) hold(ctx context.Context, at *presence.Link, k *link) error {
	state := linkState{State: LinkConnecting}
	if k != nil {
		state = k.now()
	}
	b, err := json.Marshal(state)
	if err != nil {
		return err
	}
	holds, err := l.node.Config().Presence.Links.Hold(ctx, *at, l.node.Holder(), l.lasts(), string(b))
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
	k := newLink(l, at)
	l.mu.Lock()
	l.held[place{tenant: at.Tenant, address: at.Address}] = k
	l.mu.Unlock()
	l.cfg.Log.Info("edge holds the link to a gateway", "address", at.Address, "tenant", at.Tenant)
	k.work.Go(k.run)
}

// end forgets a link that this edge has let go of.
func (l *links) end(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, place{tenant: k.Tenant, address: k.Address})
}
