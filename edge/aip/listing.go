package aip

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire/aip"
)

// listings keeps nodes as they stand in the answer to a registration, which has all nodes that there are: each is
// encoded once. The zero value is ready to use.
type listings struct {
	mu    sync.Mutex // guards the fields below
	all   map[agora.Address]listing
	bytes int
}

// listing is a node in that answer.
type listing struct {
	of   presence.Listed // as what it was found in the directory
	peer []byte
}

// registerAnswer returns the answer to an agent that has registered: all nodes, as far as there is room for them. One
// that may not see the directory learns of itself alone.
func (l *catalog) registerAnswer(ctx context.Context, c *caller, self *agora.Agent) (any, error) {
	if aip.PathOf(ctx) == nil { // else it is a gateway, which is told through which others each node is reached
		known, err := l.encoded(ctx, c)
		switch e := agora.AsError(err); {
		case e != nil && e.Code == agora.Forbidden:
			return aip.RegisterAnswer([][]byte{aip.ListedNode(&self.Registration)}), nil
		case e != nil:
			return nil, err
		case known != nil:
			return aip.RegisterAnswer(known), nil
		}
	}
	peers, all, err := l.peers(ctx, c, c.actor.Directory().Counted(), "")
	if err == nil {
		peers, err = aip.BoundRegistered(ctx, string(self.ID), peers, all)
	}
	return &aip.RegisterAgentResponse{Success: true, Peers: peers}, err
}

// encoded returns all nodes as they stand in that answer; nil where they are larger than it may be.
func (l *catalog) encoded(ctx context.Context, c *caller) ([][]byte, error) {
	all, err := c.actor.Directory().Listed(ctx)
	if err != nil {
		return nil, err
	}
	known, unknown := l.listed.split(c.actor.Principal().Tenant, all)
	room := aip.ListingOf(ctx)
	for _, peer := range known {
		room -= len(peer)
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(unknown)), atOnce) {
		if room < 0 {
			break
		}
		if err := l.list(ctx, c, known, unknown, some); err != nil {
			return nil, err
		}
		for _, place := range some {
			room -= len(known[place])
		}
	}
	if room < 0 {
		return nil, nil
	}
	return known, nil
}

// split returns the nodes of a directory as they are kept, with nil for each that is not, and which those are, by their
// places.
func (l *listings) split(tenant string, all func(func(presence.Listed) bool)) (known [][]byte, unknown map[int]presence.Listed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known = make([][]byte, 0, len(l.all)+2)
	for a := range all {
		kept, is := l.all[agora.ToAgent(tenant, a.ID)]
		if !is || !kept.of.Same(a) {
			if unknown == nil {
				unknown = map[int]presence.Listed{}
			}
			unknown[len(known)], kept.peer = a, nil
		}
		known = append(known, kept.peer)
	}
	return known, unknown
}

// list puts some of the nodes that are not kept in their places, and keeps them; nil stays in those of nodes that are
// gone.
func (l *catalog) list(ctx context.Context, c *caller, at [][]byte, unknown map[int]presence.Listed, some []int) error {
	cards, places := make([]agora.Agent, 0, len(some)), make(map[agora.AgentID]int, len(some))
	for _, place := range some {
		of := unknown[place]
		cards, places[of.ID] = append(cards, of.Agent()), place
	}
	cards, err := l.whole(ctx, c, cards)
	if err != nil {
		return err
	}
	for i := range cards {
		place := places[cards[i].ID]
		if at[place], err = l.encode(&cards[i]); err != nil {
			return err
		}
		if cards[i].Dialect != aip.Dialect || aip.Fingerprint(cards[i].Registration.Body) == aip.About(&cards[i]).Fingerprint { // else it has registered again meanwhile
			l.listed.keep(c.actor.Principal().Tenant, listing{unknown[place], at[place]})
		}
	}
	return nil
}

// encode returns a node as it stands in the answer.
func (l *catalog) encode(card *agora.Agent) ([]byte, error) {
	if card.Dialect == aip.Dialect && originOf(card) == nil {
		return aip.ListedNode(&card.Registration), nil
	}
	return aip.ListedPeer(l.peerOf(card, nil))
}

func (l *listings) keep(tenant string, a listing) {
	at := agora.ToAgent(tenant, a.of.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	size := len(a.peer)
	if was, is := l.all[at]; is {
		l.bytes -= len(was.peer)
	}
	if l.all == nil || l.bytes+size > keptBytes {
		l.all, l.bytes = map[agora.Address]listing{}, 0
	}
	l.all[at] = a
	l.bytes += size
}
