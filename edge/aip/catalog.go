package aip

import (
	"context"
	"iter"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/wire/aip"
)

// catalog shows the agents and toolboxes that there are, as nodes: each is reached where its caller can reach it.
type catalog struct {
	*shared
	kept       registrations          // what nodes have registered with
	listed     listings               // nodes as they are told to those that register
	advertised atomic.Pointer[string] // where this edge is reached; nil before Serve
}

// peers returns the nodes of a domain, and the agents of other dialects, for [aip.Bound]: whole ones, until they are
// more than the answer to the call has room for, and the others as the directory has them where it is no page. all says
// that these are all there are behind the last page, and whole.
func (l *catalog) peers(ctx context.Context, c *caller, in edge.Directory, domain string) (peers []*aip.Peer, all bool, err error) {
	after, paged := aip.AfterOf(ctx)
	found, err := in.Select(ctx, directory.Filter{After: agora.AgentID(after)})
	if err != nil {
		return nil, false, err
	}
	next, stop := iter.Pull(inDomain(found, domain))
	defer stop()
	for room := aip.ListingOf(ctx); !all && room >= 0; {
		var some []*aip.Peer
		if some, all, err = l.some(ctx, c, next, true); err != nil {
			return nil, false, err
		}
		for _, p := range some {
			room -= proto.Size(p)
		}
		peers = append(peers, some...)
	}
	for end := all; !end && !paged; { // more of each of these is not told anyhow
		var some []*aip.Peer
		if some, end, err = l.some(ctx, c, next, false); err != nil {
			return nil, false, err
		}
		peers = append(peers, some...)
	}
	return peers, all, nil
}

// inDomain leaves out agents of other domains.
func inDomain(all iter.Seq[agora.Agent], domain string) iter.Seq[agora.Agent] {
	return func(yield func(agora.Agent) bool) {
		for a := range all {
			if aip.InDomain(&a, domain) && !yield(a) {
				return
			}
		}
	}
}

// atOnce is how many nodes are completed before it is seen whether there is room for more.
const atOnce = 64

// some returns the next few agents as nodes, completed where they are to be whole; all says that they are the last
// ones.
func (l *catalog) some(ctx context.Context, c *caller, next func() (agora.Agent, bool), whole bool) (peers []*aip.Peer, all bool, err error) {
	var cards []agora.Agent
	for len(cards) < atOnce && !all {
		if a, is := next(); is {
			cards = append(cards, a)
		} else {
			all = true
		}
	}
	if whole {
		if cards, err = l.whole(ctx, c, cards); err != nil {
			return nil, false, err
		}
	}
	path := aip.PathOf(ctx)
	for i := range cards {
		if p := l.peerOf(&cards[i], path); p != nil {
			peers = append(peers, p)
		}
	}
	return peers, all, nil
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

// registrations keeps what nodes have registered with, by its digest, so that a list of them takes no look at each. The
// zero value is ready to use.
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
