package aip

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/aip"
)

// catalog shows the agents and toolboxes that there are, as nodes: each is reached where its caller can reach it.
type catalog struct {
	*shared
	kept       registrations          // what nodes have registered with
	listed     listings               // nodes as they are told to those that register
	advertised atomic.Pointer[string] // where this edge is reached; nil before Serve
}

// peers returns the nodes of a domain, and the agents of other dialects.
func (l *catalog) peers(ctx context.Context, c *caller, domain string) ([]*aip.Peer, error) {
	cards, err := c.actor.Directory().All(ctx)
	if err != nil {
		return nil, err
	}
	cards = slices.DeleteFunc(cards, func(a agora.Agent) bool { return !aip.InDomain(&a, domain) })
	if cards, err = l.whole(ctx, c, cards); err != nil {
		return nil, err
	}
	peers, path := make([]*aip.Peer, 0, len(cards)), aip.PathOf(ctx)
	for i := range cards {
		if p := l.peerOf(&cards[i], path); p != nil {
			peers = append(peers, p)
		}
	}
	return peers, nil
}

// whole completes the cards of nodes by what they registered with, which lists leave out.
func (l *catalog) whole(ctx context.Context, c *caller, cards []agora.Agent) ([]agora.Agent, error) {
	var missing []agora.AgentID
	for i := range cards {
		if a := &cards[i]; a.Dialect == aip.Dialect && !l.kept.fill(a) {
			missing = append(missing, a.ID)
		}
	}
	if len(missing) == 0 {
		return cards, nil
	}
	found, err := c.actor.Directory().Counted().Cards(ctx, missing)
	if err != nil {
		return nil, err
	}
	all := make(map[agora.AgentID]*agora.Agent, len(found))
	for i := range found {
		l.kept.keep(&found[i])
		all[found[i].ID] = &found[i]
	}
	left := cards[:0]
	for _, a := range cards {
		if f := all[a.ID]; f != nil {
			a.Registration = f.Registration
		}
		if a.Dialect == aip.Dialect && a.Registration.Body == nil {
			continue // it has gone meanwhile
		}
		left = append(left, a)
	}
	return left, nil
}

// address returns where agents of other dialects are reached by AIP: at this edge.
func (l *catalog) address() string {
	if l.cfg.Advertise != "" {
		return l.cfg.Advertise
	}
	if at := l.advertised.Load(); at != nil {
		return *at
	}
	return ""
}

// serves notes where the door listens.
func (l *catalog) serves(at net.Addr) {
	if l.cfg.Advertise == "" {
		address := reachable(at)
		l.advertised.Store(&address)
	}
}

// reachable returns an address at which a listener is reached from this machine.
func reachable(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return at.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// registrations keeps what nodes have registered with, by its digest, so that a list of them takes no look at each. The zero value is ready to use.
type registrations struct {
	mu    sync.Mutex // guards the fields below
	all   map[string]agora.Registration
	bytes int
}

// keptBytes bounds what is kept; beyond it all is forgotten, and read again.
const keptBytes = 16 << 20

// fill gives a card the registration that its digest names; false where that is not kept.
func (r *registrations) fill(a *agora.Agent) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.all[aip.About(a).Fingerprint]
	if ok {
		a.Registration = found
	}
	return ok
}

func (r *registrations) keep(a *agora.Agent) {
	digest := aip.About(a).Fingerprint
	if digest == "" || a.Registration.Body == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, is := r.all[digest]; is {
		return
	}
	if r.all == nil || r.bytes+len(a.Registration.Body) > keptBytes {
		r.all, r.bytes = map[string]agora.Registration{}, 0
	}
	r.all[digest] = a.Registration
	r.bytes += len(a.Registration.Body)
}
