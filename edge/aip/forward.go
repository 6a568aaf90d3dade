package aip

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/aip"
)

// callAgent is the method of agents, as a stream of bytes both ways.
var callAgent = grpc.StreamDesc{StreamName: "CallAgent", ServerStreams: true, ClientStreams: true}

// sessionMethod is the method by which a session is had with a node: that of its gateway, where it is reached by a
// link.
func sessionMethod(linked bool) string {
	if linked {
		return aip.GatewayService_RouteAgentCalling_FullMethodName
	}
	return aip.AgentService_CallAgent_FullMethodName
}

// toolMethod is the same for a tool call.
func toolMethod(linked bool) string {
	if linked {
		return aip.GatewayService_RouteToolCalling_FullMethodName
	}
	return aip.ToolService_CallTool_FullMethodName
}

// forward serves a session with a node by a call of the node's own: messages pass as the bytes that they are, both ways
// at once, and the one who reads slowly slows who writes to it.
func (r *router) forward(s grpc.ServerStream, o *opening, t *target) error {
	if err := o.actor.Spend(s.Context(), o.as, o.first.Len()); err != nil {
		return err
	}
	if err := r.screen(s.Context(), o); err != nil {
		return err
	}
	by, to := o.actor.Owner(o.as), agora.ToAgent(t.tenant, o.to)
	if err := r.node.Usage().OpenCall(by, to); err != nil {
		return err
	}
	defer r.node.Usage().CloseCall(by, to)
	ch, err := r.channels.get(t.place())
	if err != nil {
		return err
	}
	defer ch.release()
	span, trace := r.span(o.as, t, o.trace)
	ctx, cancel := context.WithCancel(outgoing(s.Context(), trace))
	defer cancel()
	ctx, sent := observed(ctx)
	x := &exchange{router: r, o: o, caller: s, cancel: cancel, to: t, owner: r.registry.speaks(t)}
	wrong := false
	if ctx, err = r.toward(ctx, t); err == nil {
		x.callee, err = ch.NewStream(ctx, &callAgent, sessionMethod(t.link != nil))
	}
	if err == nil {
		wrong, err = x.run()
	}
	span.End(spanError(err))
	if err != nil {
		x.breakOff(err)
	}
	if !wrong {
		r.registry.judged(s.Context(), t, err, sent)
	}
	return err
}

// screen holds the beginning of a session to what it asks for, as the beginning of a stream of any dialect. What
// follows it is text: nobody takes that for a call.
func (r *router) screen(ctx context.Context, o *opening) error {
	if !wire.MayAsk(o.first.Bytes()) {
		return nil
	}
	items, err := aip.Items(o.first.Bytes())
	if err != nil {
		return err
	}
	m := agora.Message{Part: agora.Start, From: o.as, To: agora.ToAgent(o.actor.Principal().Tenant, o.to), Stream: o.rules.Session(), Body: aip.AppendPayload(nil, items)}
	return r.cfg.Carriers.Screen(ctx, o.actor, &m)
}

// exchange is a session between a caller and a node that is called.
type exchange struct {
	router *router
	o      *opening
	caller grpc.ServerStream
	callee grpc.ClientStream
	cancel func() // ends the call of the callee

	to       *target
	owner    *edge.Actor // as whose what the callee says counts
	answered bool        // the callee has said something
	stopped  bool        // and that its answer is whole
}

// run has the messages pass both ways until the callee has ended the session, or the caller has gone. It returns the
// error that the caller gets, and whether that is of the caller's own doing.
func (x *exchange) run() (own bool, err error) {
	wrong := make(chan error, 1) // what the caller did
	first := x.o.first.Move()
	x.router.work.Go(func() { // ends with the handler, whose return ends what it reads
		if err := x.sendAll(first); err != nil {
			wrong <- err
			x.cancel()
		}
	})
	err = x.receiveAll()
	select {
	case e := <-wrong:
		return true, e
	default:
		return false, err
	}
}

// sendAll passes what the caller says, of which f is the first. It returns what the caller did wrong.
func (x *exchange) sendAll(f *aip.Frame) error {
	x.o.sign(f, true)
	for {
		if err := x.callee.SendMsg(f); err != nil {
			f.Free()
			return nil // the callee has ended the session, and says why
		}
		if err := x.caller.RecvMsg(f); errors.Is(err, io.EOF) {
			return onlyWrong(x.callee.CloseSend())
		} else if err != nil {
			return onlyWrong(err)
		}
		x.router.stats.In.Add(int64(f.Len()))
		x.router.lives(x.o)
		err := x.o.follows(f)
		if err == nil {
			err = x.o.actor.Pace(x.caller.Context(), x.o.as, f.Len())
		}
		if err != nil {
			f.Free()
			return err
		}
	}
}

// onlyWrong returns the error of reading from a caller where that is the caller's own doing, as a message that is too
// large is.
func onlyWrong(err error) error {
	switch status.Code(err) {
	case codes.OK, codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		return nil
	}
	return err
}

// stopLinger is how long a callee may take to end a session in which it has said its last word.
const stopLinger = 500 * time.Millisecond

// receiveAll passes what the callee says, until the session is over.
func (x *exchange) receiveAll() error {
	for {
		f := new(aip.Frame)
		if err := x.callee.RecvMsg(f); err != nil {
			if errors.Is(err, io.EOF) || x.stopped && status.Code(err) == codes.Canceled && x.caller.Context().Err() == nil {
				return nil
			}
			return err
		}
		if e, err := aip.ReadEnvelope(f.Bytes()); err == nil {
			x.answered = true
			if e.Status == aip.AgentMessage_STOP_RESPONSE && !x.stopped {
				x.stopped = true
				defer time.AfterFunc(stopLinger, x.cancel).Stop()
			}
		}
		x.router.stats.Out.Add(int64(f.Len()))
		if err := x.owner.Pace(x.caller.Context(), x.to.id, f.Len()); err != nil {
			f.Free()
			return err
		}
		if err := x.caller.SendMsg(f); err != nil {
			f.Free()
			return err
		}
	}
}

// breakOff tells the caller of a session that had been answered that no more comes of it, before it gets the status.
func (x *exchange) breakOff(err error) {
	if !x.answered || x.stopped || x.caller.Context().Err() != nil {
		return
	}
	last := aip.Message{
		Sender: x.o.named.Receiver, Receiver: x.o.named.Sender, Session: x.o.rules.Session(),
		Status: aip.AgentMessage_STOP_RESPONSE, Content: []aip.Item{{Data: []byte(statusOf(err).Message())}},
	}
	_ = x.caller.SendMsg(aip.NewFrame(last.Append(nil))) // the status says the same
}

// outgoing is the context of a call to a node: none of its caller's metadata goes with it, as credentials stand there.
func outgoing(ctx context.Context, trace string) context.Context {
	if trace == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "traceparent", trace)
}

// span begins the span of a call that passes, and returns the traceparent that goes with it.
func (r *router) span(as agora.AgentID, t *target, parent string) (*trace.Span, string) {
	m := agora.Message{From: as, To: agora.ToAgent(t.tenant, t.id), Meta: agora.Meta{Trace: parent}}
	span := r.node.Config().Tracer.Send(&m)
	return span, m.Meta.Trace
}

// spanError is the error of a call as its span has it.
func spanError(err error) *agora.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*agora.Error](err); ok {
		return e
	}
	return aip.Failure(statusOf(err))
}
