package aip_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/aip"
)

func TestEachNodeGetsItsOwnCallsUnderItsOwnAddress(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	const nodes = 8
	for k := range nodes {
		id := fmt.Sprintf("box-%d", k)
		n := startNode(t, &node{})
		n.tool = func(ctx context.Context, in *wire.ToolRequest) (*wire.ToolResponse, error) {
			head, _ := metadata.FromIncomingContext(ctx)
			if got := head.Get(":authority"); len(got) != 1 || got[0] != n.addr {
				t.Errorf("%s is called as %q, want %q", id, got, n.addr)
			}
			return &wire.ToolResponse{SenderId: id}, nil
		}
		s.toolbox(k%2, id, n)
	}
	var calling sync.WaitGroup
	for k := range 8 * nodes {
		calling.Go(func() {
			id := fmt.Sprintf("box-%d", k%nodes)
			out, err := s.gateway(k/nodes%2, "").RouteToolCalling(t.Context(), &wire.ToolRequest{SenderId: "c", ReceiverId: id, SessionId: "s", ToolName: "t"})
			if err != nil || out.GetSenderId() != id {
				t.Errorf("%s answers %v, %v", id, out, err)
			}
		})
	}
	calling.Wait()
}
