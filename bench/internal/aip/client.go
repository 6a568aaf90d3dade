package aip

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The ids of the agent and of the toolbox that are called.
const (
	Agent   = "agent"
	Toolbox = "toolbox"
)

// Client calls the agent and the toolbox. Its methods may be called at the same time.
type Client struct {
	agent, tool     *grpc.ClientConn // often the same
	session, callee string           // methods
	gateway         bool
}

// DialNodes returns a client of nodes, or of a proxy that stands for both.
func DialNodes(agent, toolbox string) (*Client, error) {
	c := &Client{session: "/grpc_service.AgentService/CallAgent", callee: "/grpc_service.ToolService/CallTool"}
	var err error
	if c.agent, err = dial(agent, ""); err != nil {
		return nil, err
	}
	if c.tool = c.agent; toolbox != agent {
		if c.tool, err = dial(toolbox, ""); err != nil {
			c.agent.Close()
			return nil, err
		}
	}
	return c, nil
}

// DialGateway returns a client of a gateway.
func DialGateway(addr, token string) (*Client, error) {
	conn, err := dial(addr, token)
	if err != nil {
		return nil, err
	}
	return &Client{
		agent: conn, tool: conn, gateway: true,
		session: "/grpc_service.GatewayService/RouteAgentCalling", callee: "/grpc_service.GatewayService/RouteToolCalling",
	}, nil
}

func dial(addr, token string) (*grpc.ClientConn, error) {
	o := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
	}
	if token != "" {
		o = append(o, grpc.WithPerRPCCredentials(bearer("Bearer "+token)))
	}
	return grpc.NewClient("passthrough:///"+addr, o...)
}

// bearer presents a token with each call.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (bearer) RequireTransportSecurity() bool { return false }

// Close ends its connections and calls.
func (c *Client) Close() error {
	err := c.agent.Close()
	if c.tool != c.agent {
		err = errors.Join(err, c.tool.Close())
	}
	return err
}

// Gateway reports whether nodes can register with what it calls.
func (c *Client) Gateway() bool { return c.gateway }

// CallTool calls the toolbox, which answers with the arguments.
func (c *Client) CallTool(ctx context.Context, from, arguments string) error {
	var r Response
	if err := c.tool.Invoke(ctx, c.callee, &Request{Sender: from, Receiver: Toolbox, Session: from, Tool: "echo", Arguments: arguments}, &r); err != nil {
		return err
	}
	if r.Text != arguments {
		return fmt.Errorf("the tool answers %.60q", r.Text)
	}
	return nil
}

var stream = grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// Session is a session with the agent, which answers each message by its own content. One goroutine may send while
// another one receives.
type Session struct {
	stream grpc.ClientStream
	from   string
}

// Open begins a session, whose first message is to be a Start.
func (c *Client) Open(ctx context.Context, from string) (*Session, error) {
	s, err := c.agent.NewStream(ctx, &stream, c.session)
	return &Session{s, from}, err
}

// Send sends a message. io.EOF says that the session is over: Receive returns why.
func (s *Session) Send(status Status, kind Kind, content []byte) error {
	return s.stream.SendMsg(&Message{Sender: s.from, Receiver: Agent, Session: s.from, Status: status, Kind: kind, Content: content})
}

// Receive returns the next message; io.EOF where none comes any more.
func (s *Session) Receive() (Message, error) {
	var m Message
	err := s.stream.RecvMsg(&m)
	return m, err
}

// Finish stops the session, after its last message, and returns once that is answered, with how many other answers came
// before. Nobody receives meanwhile.
func (s *Session) Finish() (before int64, err error) {
	if err := s.Send(Stop, Text, nil); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	for {
		m, err := s.Receive()
		switch {
		case err != nil:
			return before, err
		case m.Status == StopResponse:
			return before, nil
		}
		before++
	}
}

// RegisterAgent registers an agent that answers at an address.
func (c *Client) RegisterAgent(ctx context.Context, id, address string) error {
	return c.gatewayCall(ctx, "RegisterAgent", &info{id, address, "Node " + id, "bench"})
}

// RegisterToolbox registers a toolbox that answers at an address.
func (c *Client) RegisterToolbox(ctx context.Context, id, address string) error {
	return c.gatewayCall(ctx, "RegisterTool", &info{id, address, "Node " + id, "bench"})
}

// Heartbeat says that a node lives.
func (c *Client) Heartbeat(ctx context.Context, id string) error {
	return c.gatewayCall(ctx, "Heartbeat", &named{id})
}

func (c *Client) gatewayCall(ctx context.Context, method string, in encoder) error {
	return c.agent.Invoke(ctx, "/grpc_service.GatewayService/"+method, in, new(done))
}
