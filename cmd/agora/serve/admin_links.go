package serve

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/aip"
)

// answerLinks has answer, which adds a pattern, answer what operators ask about links to gateways of others.
func (e *edgeServer) answerLinks(answer func(pattern string, f func(context.Context, operatorQuery) (any, error))) {
	answer("GET /v1/links", func(ctx context.Context, _ operatorQuery) (any, error) {
		d, err := e.doors.gateway()
		if err != nil {
			return nil, err
		}
		all, err := d.Links(ctx)
		return linkViews{all}, err
	})
	answer("POST /v1/link", func(ctx context.Context, q operatorQuery) (any, error) {
		d, err := e.doors.gateway()
		if err != nil {
			return nil, err
		}
		return map[string]any{"address": q.id, "linked": true}, d.Link(ctx, q.tenant, q.id)
	})
	answer("POST /v1/unlink", func(ctx context.Context, q operatorQuery) (any, error) {
		d, err := e.doors.gateway()
		if err != nil {
			return nil, err
		}
		return map[string]any{"address": q.id, "linked": false}, d.Unlink(ctx, q.tenant, q.id)
	})
}

// linkViews is what the admin port answers about links: those of all tenants.
type linkViews struct {
	Links []aip.LinkView `json:"links"`
}

// gateway returns the AIP door, without which an edge knows nothing of links.
func (d *doors) gateway() (*aip.Door, error) {
	if d.aip == nil {
		return nil, agora.Errorf(agora.InvalidRequest, "this edge has no grpc-addr, and knows nothing of links: ask one that has")
	}
	return d.aip, nil
}
