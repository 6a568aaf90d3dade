package aip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// Forward serves at an address, and passes sessions on to an agent and calls of tools on to a toolbox as the bytes that
// they are, until it fails.
func Forward(listen, agent, toolbox string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	f := new(forwarder)
	if f.agent, err = dialRaw(agent); err != nil {
		return err
	}
	if f.tool, err = dialRaw(toolbox); err != nil {
		return err
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "grpc_service.AgentService", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "CallAgent", Handler: f.session, ServerStreams: true, ClientStreams: true}},
	}, nil)
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "grpc_service.ToolService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "CallTool", Handler: f.call}},
	}, nil)
	return s.Serve(l)
}

func dialRaw(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)))
}

// forwarder passes calls on.
type forwarder struct{ agent, tool *grpc.ClientConn }

func (f *forwarder) call(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in, out := new(raw), new(raw)
	if err := decode(in); err != nil {
		return nil, err
	}
	return out, f.tool.Invoke(ctx, "/grpc_service.ToolService/CallTool", in, out)
}

func (f *forwarder) session(_ any, caller grpc.ServerStream) error {
	callee, err := f.agent.NewStream(caller.Context(), &stream, "/grpc_service.AgentService/CallAgent")
	if err != nil {
		return err
	}
	go func() { // ends with the handler, whose return ends what it reads
		if errors.Is(pass(callee.SendMsg, caller.RecvMsg), io.EOF) {
			_ = callee.CloseSend() // the callee says what is wrong
		}
	}()
	if err := pass(caller.SendMsg, callee.RecvMsg); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// pass passes messages on until there is none, or one can't be.
func pass(send, receive func(any) error) error {
	for {
		m := new(raw)
		if err := receive(m); err != nil {
			return err
		}
		if err := send(m); err != nil {
			return err
		}
	}
}

// raw is a message as the bytes that it came in.
type raw struct{ data mem.BufferSlice }

// rawCodec passes a raw as it is.
type rawCodec struct{}

// Name implements encoding.CodecV2.
func (rawCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*raw)
	if !ok {
		return nil, fmt.Errorf("aip: %T can't be passed on", v)
	}
	return m.data, nil
}

// Unmarshal implements encoding.CodecV2.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*raw)
	if !ok {
		return fmt.Errorf("aip: %T can't be passed on", v)
	}
	data.Ref()
	m.data = data
	return nil
}
