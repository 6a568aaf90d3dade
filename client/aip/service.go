package aip

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"google.golang.org/grpc/codes"

	wire "github.com/agora-relay/agora/wire/aip"
)

// services are what a gateway serves. They are those of the wire, but that calls between nodes pass as bytes. A gateway
// serves the calls of nodes as well: who dials the address of a node that a linked gateway has dials this one.
var services = []grpc.ServiceDesc{{
	ServiceName: "grpc_service.GatewayService",
	HandlerType: (*any)(nil),
	Metadata:    wire.File_aip_proto.Path(),
	Methods: []grpc.MethodDesc{
		unary("RouteToolCalling", (*Gateway).routeTool),
		unary("RegisterAgent", (*Gateway).registerAgent),
		unary("RegisterTool", (*Gateway).registerToolbox),
		unary("DeregisterNode", (*Gateway).deregisterNode),
		unary("GetNodes", (*Gateway).getNodes),
		unary("Heartbeat", (*Gateway).heartbeat),
		unary("UpdateNodeInfo", (*Gateway).updateNodeInfo),
		unary("Unsubscribe", (*Gateway).unsubscribe),
	},
	Streams: []grpc.StreamDesc{streaming("RouteAgentCalling", true, (*Gateway).routeAgent), streaming("SubscribeToUpdates", false, (*Gateway).subscribe)},
}, {
	ServiceName: "grpc_service.AgentService",
	HandlerType: (*any)(nil),
	Metadata:    wire.File_aip_proto.Path(),
	Streams:     []grpc.StreamDesc{streaming("CallAgent", true, (*Gateway).routeAgent)},
}, {
	ServiceName: "grpc_service.ToolService",
	HandlerType: (*any)(nil),
	Metadata:    wire.File_aip_proto.Path(),
	Methods:     []grpc.MethodDesc{unary("CallTool", (*Gateway).routeTool)},
}}

// unary returns a method that takes one message and gives one.
func unary[In, Out any](name string, f func(*Gateway, context.Context, *In) (*Out, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(In)
		if err := decode(in); err != nil {
			return nil, err
		}
		return f(srv.(*Gateway), ctx, in)
	}}
}

// streaming returns a method that gives many messages, and takes many where both is set.
func streaming(name string, both bool, f func(*Gateway, grpc.ServerStream) error) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: both, Handler: func(srv any, s grpc.ServerStream) error {
		return f(srv.(*Gateway), s)
	}}
}

func (g *Gateway) registerAgent(ctx context.Context, in *AgentInfo) (*wire.RegisterAgentResponse, error) {
	if err := g.register(ctx, agentPeer(in)); err != nil {
		return nil, err
	}
	peers, err := wire.BoundRegistered(ctx, in.GetAgentId(), g.directory.list(nil), true)
	return &wire.RegisterAgentResponse{Success: true, Peers: peers}, err
}

func (g *Gateway) registerToolbox(ctx context.Context, in *ToolBoxInfo) (*wire.RegisterToolResponse, error) {
	if err := g.register(ctx, toolboxPeer(in)); err != nil {
		return nil, err
	}
	return &wire.RegisterToolResponse{Success: true}, nil
}

func (g *Gateway) deregisterNode(_ context.Context, in *wire.DeregisterNodeRequest) (*wire.DeregisterNodeResponse, error) {
	l, _ := g.directory.find(in.GetNodeId())
	return &wire.DeregisterNodeResponse{Success: l.member != nil && g.deregister(l.member)}, nil
}

func (g *Gateway) getNodes(ctx context.Context, in *wire.GetNodesRequest) (*wire.GetNodesResponse, error) {
	var peers []*Peer
	for _, p := range g.directory.list(wire.PathOf(ctx)) {
		if d := in.GetDomain(); d == "" || d == "default" || d == peerDomain(p) {
			peers = append(peers, p)
		}
	}
	peers, err := wire.Bound(ctx, peers, true)
	return &wire.GetNodesResponse{Peers: peers}, err
}

func (g *Gateway) heartbeat(_ context.Context, in *wire.HeartbeatRequest) (*wire.HeartbeatResponse, error) {
	if !g.directory.alive(in.GetSenderId()) {
		return &wire.HeartbeatResponse{Message: wire.UnknownNode(in.GetSenderId())}, nil
	}
	return &wire.HeartbeatResponse{Success: true, Message: "Heartbeat received"}, nil
}

func (g *Gateway) unsubscribe(_ context.Context, in *wire.UnsubscribeRequest) (*wire.UnsubscribeResponse, error) {
	if !g.directory.unsubscribe(in.GetSubscriberId(), in.GetNodeIds()) {
		return &wire.UnsubscribeResponse{Message: "Subscriber " + in.GetSubscriberId() + " has no subscription"}, nil
	}
	return &wire.UnsubscribeResponse{Success: true, Message: "Unsubscribed"}, nil
}

// subscribe answers SubscribeToUpdates, until the subscriber goes or unsubscribes, or the gateway is closed.
func (g *Gateway) subscribe(s grpc.ServerStream) error {
	in := new(wire.UpdateSubscriptionRequest)
	if err := s.RecvMsg(in); err != nil {
		return err
	}
	w := g.directory.watch(in.GetSubscriberId(), wire.PathOf(s.Context()), in.GetNodeIds())
	defer g.directory.unwatch(w)
	if err := s.SendHeader(metadata.MD{}); err != nil { // it is watched from now on
		return err
	}
	for {
		select {
		case <-w.ready:
		case <-s.Context().Done():
			return status.FromContextError(s.Context().Err()).Err()
		case <-g.life.Done():
			return status.Error(codes.Unavailable, "the gateway is closed")
		}
		updates, over, err := g.directory.take(w)
		for _, u := range updates {
			if err := s.SendMsg(u); err != nil {
				return err
			}
		}
		if over {
			return err
		}
	}
}
