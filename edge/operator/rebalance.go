package operator

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// Rebalancing is how many agents the edges have, and what is done so that all have as many.
type Rebalancing struct {
	Mean  int         `json:"mean"` // rounded up
	Edges []EdgeMoves `json:"edges"`
}

// EdgeMoves is how many agents an edge has, and how many of them it tells to reconnect.
type EdgeMoves struct {
	Edge   string `json:"edge"`
	Agents int    `json:"agents"`
	Above  int    `json:"above"` // the mean
	Moves  int    `json:"moves"` // fewer than Above where it moves some already, or can't be asked
}

// Rebalance has each edge that has more agents than the mean tell as many as it has more to reconnect, some a second:
// they go on at other edges, and nothing is lost. It returns once the edges have begun. Where only planned, it asks how
// many agents there are, and moves none. UNAVAILABLE where an edge drains, can't serve or does not answer.
func (s *Service) Rebalance(ctx context.Context, perSecond int, planned bool) (Rebalancing, error) {
	if perSecond < 1 {
		return Rebalancing{}, agora.Errorf(agora.InvalidRequest, "rate must be at least 1")
	}
	loads, err := s.node.Balancer().Loads(ctx)
	if err != nil {
		return Rebalancing{}, err
	}
	r := Rebalancing{Mean: edge.Mean(loads), Edges: []EdgeMoves{}}
	for _, l := range loads {
		m := EdgeMoves{Edge: l.Holder.Edge, Agents: l.Agents, Above: max(l.Agents-r.Mean, 0)}
		if m.Above > 0 && !planned {
			moves, err := s.node.Inquiries().Move(ctx, l.Holder, m.Above, perSecond)
			if err != nil {
				s.log.Warn("an edge does not move the agents that it has more than others", "edge", l.Holder.Edge, "err", err)
			}
			m.Moves = moves
		}
		r.Edges = append(r.Edges, m)
	}
	return r, nil
}
