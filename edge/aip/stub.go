package aip

import (
	"context"

	"google.golang.org/grpc"

	"github.com/agora-relay/agora"
)

type link struct{}
type links struct{}

func (links) find(string, agora.AgentID) (*link, string) { return nil, "" }
func (d *Door) forwardLink(grpc.ServerStream, *opening, *target) error {
	return agora.Errorf(agora.Unavailable, "not yet")
}
func (d *Door) invokeLink(context.Context, *toolCall, *target) (any, error) {
	return nil, agora.Errorf(agora.Unavailable, "not yet")
}
