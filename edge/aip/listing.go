package aip

import (
	"context"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire/aip"
)

// listings keeps nodes as they stand in the answer to a registration, which has all nodes that there are: each is encoded once. The zero value is ready to use.
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

// registerAnswer returns the answer to who has registered.
func (l *catalog) registerAnswer(ctx context.Context, c *caller) (any, error) {
	if aip.PathOf(ctx) != nil { // a gateway, which is told through which others each node is reached
		peers, err := l.peers(ctx, c, "")
		return &aip.RegisterAgentResponse{Success: true, Peers: peers}, err
	}
	all, err := c.actor.Directory().Listed(ctx)
	if err != nil {
		return nil, err
	}
	known, unknown := l.listed.split(c.actor.Principal().Tenant, all)
	if len(unknown) > 0 {
		if err := l.list(ctx, c, known, unknown); err != nil {
			return nil, err
		}
	}
	return aip.RegisterAnswer(known), nil
}

// split returns the nodes of a directory as they are kept, with nil for each that is not, and which those are, by their places.
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

// list puts nodes in their places, and keeps them; nil stays in those of nodes that are gone.
func (l *catalog) list(ctx context.Context, c *caller, at [][]byte, unknown map[int]presence.Listed) error {
	cards, places := make([]agora.Agent, 0, len(unknown)), make(map[agora.AgentID]int, len(unknown))
	for place, l := range unknown {
		cards, places[l.ID] = append(cards, l.Agent()), place
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
		if cards[i].Dialect != aip.Dialect || aip.Fingerprint(cards[i].Registration.Body) == aip.About(&cards[i]).Fingerprint { // else it has registered anew meanwhile
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
