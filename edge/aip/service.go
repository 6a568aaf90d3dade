package aip

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/agora-relay/agora/wire/aip"
)

// gateway is the door as its gRPC service: its methods read what is asked, have it done, and write the answer.
type gateway struct {
	aip.UnimplementedGatewayServiceServer
	*Door
}

// GetNodes implements the protocol's method: the agents of a domain, of every dialect, and the toolboxes.
func (g gateway) GetNodes(ctx context.Context, in *aip.GetNodesRequest) (*aip.GetNodesResponse, error) {
	c := callerOf(ctx)
	peers, all, err := g.catalog.peers(ctx, c, c.actor.Directory(), in.GetDomain())
	if err == nil {
		peers, err = aip.Bound(ctx, peers, all)
	}
	if err != nil {
		return nil, err
	}
	return &aip.GetNodesResponse{Peers: peers}, nil
}

// gatewayService is GatewayService, some methods of which get their message as the bytes that it is.
func gatewayService() *grpc.ServiceDesc {
	s := aip.GatewayService_ServiceDesc
	s.Methods, s.Streams = slices.Clone(s.Methods), slices.Clone(s.Streams)
	for i, m := range s.Methods {
		if raw := rawMethods[m.MethodName]; raw != nil {
			s.Methods[i].Handler = raw.handle
		}
	}
	for i := range s.Streams {
		if s.Streams[i].StreamName == "RouteAgentCalling" {
			s.Streams[i].Handler = func(srv any, s grpc.ServerStream) error { return srv.(gateway).router.routeAgent(s) }
		}
	}
	return &s
}

// nodeServices are AgentService and ToolService: who calls an agent of another dialect at the address that it is listed
// with, which is that of an edge, calls it there as a node is called directly.
func nodeServices() []*grpc.ServiceDesc {
	agent, tool := aip.AgentService_ServiceDesc, aip.ToolService_ServiceDesc
	agent.HandlerType, tool.HandlerType = (*any)(nil), (*any)(nil)
	agent.Streams, tool.Methods = slices.Clone(agent.Streams), slices.Clone(tool.Methods)
	agent.Streams[0].Handler = func(srv any, s grpc.ServerStream) error { return srv.(gateway).router.routeAgent(s) }
	tool.Methods[0].Handler = rawMethods["RouteToolCalling"].handle
	return []*grpc.ServiceDesc{&agent, &tool}
}

// rawMethods are the methods with one message each way that get theirs as bytes.
var rawMethods = map[string]rawMethod{
	"RegisterAgent":    func(ctx context.Context, g gateway, in *aip.Frame) (any, error) { return g.registerAgent(ctx, in) },
	"RegisterTool":     func(ctx context.Context, g gateway, in *aip.Frame) (any, error) { return g.registerToolbox(ctx, in) },
	"UpdateNodeInfo":   func(ctx context.Context, g gateway, in *aip.Frame) (any, error) { return g.updateNode(ctx, in) },
	"RouteToolCalling": func(ctx context.Context, g gateway, in *aip.Frame) (any, error) { return g.router.routeTool(ctx, in) },
}

// rawMethod answers one method. The message is freed when it returns, unless it was sent on.
type rawMethod func(ctx context.Context, g gateway, in *aip.Frame) (any, error)

// handle is the method as gRPC calls it.
func (m rawMethod) handle(srv any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(aip.Frame)
	if err := dec(in); err != nil {
		return nil, err
	}
	defer in.Free()
	return m(ctx, srv.(gateway), in)
}
