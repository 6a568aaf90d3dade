package aip

import (
	"context"
	"errors"
	"io"
	"net"

	"google.golang.org/grpc"
)

// MaxMessage is how large messages are taken.
const MaxMessage = 16 << 20

// NewServer returns a server that is an agent and a toolbox: each message of a session is answered by its own content,
// and a call of a tool by its arguments. Anyone who has called Serve stops it.
func NewServer() *grpc.Server {
	s := grpc.NewServer(grpc.ForceServerCodecV2(codec{}), grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "grpc_service.AgentService", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "CallAgent", Handler: callAgent, ServerStreams: true, ClientStreams: true}},
	}, nil)
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "grpc_service.ToolService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "CallTool", Handler: callTool}},
	}, nil)
	return s
}

// Serve serves at addresses, until one of them fails.
func Serve(addrs ...string) error {
	s := NewServer()
	failed := make(chan error, len(addrs))
	for _, addr := range addrs {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		go func() { failed <- s.Serve(l) }() // which ends with the process
	}
	return <-failed
}

func callAgent(_ any, s grpc.ServerStream) error {
	for {
		m := new(Message)
		if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		m.Sender, m.Receiver = m.Receiver, m.Sender
		last := m.Status == Stop
		m.Status = HoldResponse
		if last {
			m.Status = StopResponse
		}
		if err := s.SendMsg(m); err != nil || last {
			return err
		}
	}
}

func callTool(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var r Request
	if err := decode(&r); err != nil {
		return nil, err
	}
	return &Response{Sender: r.Receiver, Receiver: r.Sender, Session: r.Session, Text: r.Arguments}, nil
}
