package aip

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	wire "github.com/agora-relay/agora/wire/aip"
)

// errNoReceiver answers a call of a node that the gateway does not know.
var errNoReceiver = wire.Status(wire.NoReceiver()).Err()

// target is where a call goes: to a member, or to the gateway behind a link.
type target struct {
	*channel
	ctx           context.Context // of the call there
	member        *member         // nil behind a link
	address       string
	session, tool string // methods that are called there
	opts          []grpc.CallOption
}

// target returns where a call goes that an agent or a toolbox is to get. The caller owes the pool a call of release.
func (g *Gateway) target(ctx context.Context, id string, toolbox bool) (*target, error) {
	l, ok := g.directory.find(id)
	if !ok || isToolbox(l.peer) != toolbox {
		return nil, errNoReceiver
	}
	t := &target{
		ctx: ctx, member: l.member, address: peerAddress(l.peer), session: wire.AgentService_CallAgent_FullMethodName, tool: wire.ToolService_CallTool_FullMethodName,
		opts: []grpc.CallOption{grpc.ForceCodecV2(wire.Codec{})},
	}
	if l.link != nil {
		path := wire.PathOf(ctx)
		if slices.Contains(path, g.cfg.ID) || len(path) >= wire.MaxHops {
			return nil, errNoReceiver
		}
		t.ctx, t.address = wire.WithPath(ctx, append(slices.Clip(path), g.cfg.ID)), l.link.address
		t.session, t.tool = wire.GatewayService_RouteAgentCalling_FullMethodName, wire.GatewayService_RouteToolCalling_FullMethodName
		t.opts = append(t.opts, g.auth.auth...)
	} else {
		t.ctx = wire.Meaning(ctx, id)
		g.directory.alive(id)
	}
	c, err := g.pool.fresh(t.address)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	t.channel = c
	return t, nil
}

// routeTool answers RouteToolCalling: it has the toolbox called that is meant. One whose channel is gone is
// deregistered.
func (g *Gateway) routeTool(ctx context.Context, in *wire.Frame) (*wire.Frame, error) {
	e, err := wire.ReadToolEnvelope(in.Bytes())
	if err != nil {
		return nil, wire.Status(err).Err()
	}
	t, err := g.target(ctx, string(e.Receiver), true)
	if err != nil {
		return nil, err
	}
	defer g.pool.release(t.channel)
	out := new(wire.Frame)
	if err := t.Invoke(t.ctx, t.tool, in, out, t.opts...); err != nil {
		if status.Code(err) == codes.Unavailable && t.member != nil && g.life.Err() == nil && !g.answers(ctx, t.address) {
			g.deregister(t.member)
		}
		return nil, err
	}
	return out, nil
}

// routeAgent answers RouteAgentCalling: it reads the first message, and has the agent called that is meant. One that is
// broken is deregistered.
func (g *Gateway) routeAgent(in grpc.ServerStream) error {
	first := new(wire.Frame)
	if err := in.RecvMsg(first); errors.Is(err, io.EOF) {
		return errEmpty
	} else if err != nil {
		return err
	}
	c := &carried{in: in}
	if err := c.opens(first); err != nil {
		return err
	}
	t, err := g.target(in.Context(), c.route.Receiver, false)
	if err != nil {
		return err
	}
	defer g.pool.release(t.channel)
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	c.cancel = cancel
	if c.out, err = t.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, t.session, t.opts...); err == nil {
		g.work.Go(func() { c.up(first) }) // it ends with this call
		err = c.down()
	}
	if why := context.Cause(ctx); why != nil {
		return c.fails(ended(in.Context(), why))
	}
	if t.member != nil && wire.Deregisters(status.Code(err)) && g.life.Err() == nil {
		g.deregister(t.member)
	}
	return c.fails(err)
}

// ended returns what a call ends with that the gateway has ended, or its caller.
func ended(ctx context.Context, why error) error {
	switch {
	case errors.Is(why, errLate):
		return nil
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	return why
}

// errLate ends a call that continues behind STOP_RESPONSE.
var errLate = errors.New("the session has ended")

// carried is a session between two agents, as it passes through a gateway.
type carried struct {
	route  wire.Route // of its first message
	rules  wire.Rules // which messages may follow
	in     grpc.ServerStream
	out    grpc.ClientStream
	cancel context.CancelCauseFunc // of out

	answered, stopped bool // there were answers, and the last one; of the goroutine that passes them on
}

// up passes on what the initiator says, until that is all, or breaks the rules.
func (c *carried) up(f *wire.Frame) {
	for {
		if c.out.SendMsg(f) != nil {
			return // down sees why
		}
		f = new(wire.Frame)
		err := c.in.RecvMsg(f)
		if errors.Is(err, io.EOF) {
			c.out.CloseSend()
			return
		}
		if err == nil {
			err = c.follows(f)
		}
		if err != nil {
			c.cancel(err)
			return
		}
	}
}

// opens reads the first message, and returns what is wrong with it.
func (c *carried) opens(f *wire.Frame) error {
	if err := c.follows(f); err != nil {
		return err
	}
	e, err := wire.ReadEnvelope(f.Bytes())
	c.route = e.Route()
	return err
}

// follows returns what is wrong with the next message.
func (c *carried) follows(f *wire.Frame) error {
	e, err := wire.ReadEnvelope(f.Bytes())
	if err == nil {
		err = c.rules.Check(&e)
	}
	if err != nil {
		return wire.Status(err).Err()
	}
	return nil
}

// down passes on what the other agent answers, until it ends the session.
func (c *carried) down() error {
	for {
		f := new(wire.Frame)
		err := c.out.RecvMsg(f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e, err := wire.ReadEnvelope(f.Bytes())
		if err != nil {
			return status.Error(codes.Aborted, "an answer can't be read")
		}
		if err := c.in.SendMsg(f); err != nil {
			c.cancel(err) // which says nothing of the other agent
			return err
		}
		c.answered = true
		if e.Status == StopResponse && !c.stopped {
			c.stopped = true
			late := time.AfterFunc(endTime, func() { c.cancel(errLate) })
			defer late.Stop()
		}
	}
}

// fails returns the error of a call. Where it fails though it was answered, the initiator gets a last answer before,
// which says why.
func (c *carried) fails(err error) error {
	if err == nil || !c.answered || c.stopped || c.in.Context().Err() != nil {
		return err
	}
	text := strings.ToValidUTF8(status.Convert(err).Message(), "?")
	b, fails := proto.Marshal(&Message{SenderId: c.route.Receiver, ReceiverId: c.route.Sender, SessionId: c.rules.Session(), SessionStatus: StopResponse, Content: []*ContentItem{Text(text)}})
	if fails == nil {
		c.in.SendMsg(wire.NewFrame(b)) // where that fails too, the status says it
	}
	return err
}
