package operator

import (
	"cmp"
	"context"
	"slices"

	"github.com/agora-relay/agora/edge"
)

// EdgeView is what is known of an edge.
type EdgeView struct {
	Edge        string           `json:"edge"`
	Incarnation string           `json:"incarnation"`
	Alive       bool             `json:"alive"`          // it has a lease
	RenewedMS   int64            `json:"renewed_ms_ago"` // the lease was
	Self        *edge.EdgeStatus `json:"self,omitempty"` // by its own word; missing where it does not answer
}

// InspectEdges returns what is known of the edges of the cluster, sorted by id; of one alone where an id is given.
// Each is asked. UNAVAILABLE.
func (s *Service) InspectEdges(ctx context.Context, id string) ([]EdgeView, error) {
	all, err := s.presence.Leases.Edges(ctx)
	if err != nil {
		return nil, err
	}
	views := []EdgeView{}
	for _, h := range all {
		if id != "" && h.Edge != id {
			continue
		}
		v := EdgeView{Edge: h.Edge, Incarnation: h.Incarnation}
		age, alive, err := s.presence.Leases.Age(ctx, h)
		if err != nil {
			return nil, err
		}
		v.Alive, v.RenewedMS = alive, age.Milliseconds()
		asking, cancel := context.WithTimeout(ctx, answerTime)
		if self, err := s.node.Inquiries().Edge(asking, h); err == nil {
			v.Self = self
		}
		cancel()
		views = append(views, v)
	}
	slices.SortFunc(views, func(a, b EdgeView) int { return cmp.Compare(a.Edge, b.Edge) })
	return views, nil
}
