package aip

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

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

// Link links the cluster to the gateway at an address, for a tenant; the default one if that is empty. Its nodes come
// in the background, by this edge if it may. A link that stands stays as it is. INVALID_REQUEST for an address that is
// none, FORBIDDEN where it may not be dialled, UNAVAILABLE.
func (d *Door) Link(ctx context.Context, tenant, address string) error {
	address, err := dial.Canonical(address)
	if err != nil {
		return err
	}
	if err := d.channels.dialer.Check(ctx, address); err != nil && agora.AsError(err).Code != agora.Unavailable {
		return err
	}
	p := d.node.Config().Presence
	if _, _, err := p.Links.Make(ctx, cmp.Or(tenant, agora.DefaultTenant), address, d.node.Config().Broker.Now()); err != nil {
		return err
	}
	d.links.hurry()
	return nil
}

// Links returns how all links stand, of every tenant, the oldest first.
func (d *Door) Links(ctx context.Context) ([]LinkView, error) {
	all, err := d.node.Config().Presence.Links.List(ctx, d.links.all())
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
	is, err := d.node.Config().Presence.Links.End(ctx, tenant, address)
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
		all, err := d.node.Config().Presence.Links.List(ctx, nil)
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
