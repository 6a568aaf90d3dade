package aip

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/aip"
)

// router serves sessions and calls of tools: by the nodes that are called, or by the mailboxes of agents of other
// dialects.
type router struct {
	*shared
	channels *channels
	registry *registry
}

// opening is the beginning of a session: who calls whom, and the first message.
type opening struct {
	*caller
	as       agora.AgentID // who calls
	to       agora.AgentID // who is called
	named    aip.Route     // sender and receiver as the first message names them
	rules    aip.Rules     // which messages may follow
	first    *aip.Frame    // that message
	trace    string        // W3C traceparent; empty for none
	deadline time.Time     // when the call ends; zero for never
	lives    int64         // ticks when it was last noted that who calls lives
}

// routeAgent answers RouteAgentCalling: it reads the first message, and has the session served by the way in which its
// receiver is reached.
func (r *router) routeAgent(s grpc.ServerStream) (err error) {
	begun := time.Now()
	r.stats.Calls.Add(1)
	defer func() {
		r.stats.Calls.Add(-1)
		r.stats.Sessions.Took.Observe(time.Since(begun))
		r.stats.Sessions.ended(statusCode(s.Context(), err))
	}()
	o, err := r.opens(s)
	if err != nil {
		return err
	}
	defer o.first.Free()
	t, err := r.registry.recent.find(s.Context(), o.caller, o.to)
	if err != nil {
		return o.unreached(o.as, err)
	}
	switch {
	case !t.node:
		return r.converse(s, o)
	case t.toolbox:
		return agora.Errorf(agora.InvalidRequest, "'%s' is a toolbox: its tools are called by RouteToolCalling", o.to)
	}
	return r.forward(s, o, t)
}

// statusCode returns the code that a call ends with, as its caller sees it.
func statusCode(ctx context.Context, err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if why := cause(ctx); why != nil {
		err = why
	}
	return statusOf(err).Code()
}

// opens reads the first message of a session, which may be long in coming.
func (r *router) opens(s grpc.ServerStream) (*opening, error) {
	first := new(aip.Frame)
	if err := s.RecvMsg(first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, aip.Empty()
		}
		return nil, err
	}
	o := &opening{caller: callerOf(s.Context()), first: first, trace: traceOf(s.Context())}
	if err := o.read(); err != nil {
		first.Free()
		return nil, err
	}
	o.deadline, _ = s.Context().Deadline()
	r.stats.In.Add(int64(first.Len()))
	r.lives(o)
	return o, nil
}

// read reads what routes the first message.
func (o *opening) read() error {
	e, err := aip.ReadEnvelope(o.first.Bytes())
	if err != nil {
		return err
	}
	if err := o.rules.Check(&e); err != nil {
		return err
	}
	o.named = e.Route()
	if o.as, err = o.speaks(o.named.Sender); err != nil {
		return err
	}
	o.rules.As = string(o.as)
	if o.to, err = agora.ParseAgentID(o.named.Receiver); err != nil {
		return aip.NoReceiver()
	}
	return nil
}

// lives notes now and then that who calls lives, as it continues to speak.
func (r *router) lives(o *opening) {
	if now := agora.Ticks(); o.lives == 0 || time.Duration(now-o.lives) >= reportEvery {
		o.lives = now
		r.registry.reportAlive(agora.ToAgent(o.actor.Principal().Tenant, o.as))
	}
}

// follows checks a later message of the session, and has it name its sender as the first one does. Nobody speaks for
// another, nor to another.
func (o *opening) follows(f *aip.Frame) error {
	e, err := aip.ReadEnvelope(f.Bytes())
	if err != nil {
		return err
	}
	if err := o.rules.Check(&e); err != nil {
		return err
	}
	o.sign(f, len(e.Sender) > 0)
	return nil
}

// sign has a message that names its sender name it by the id that its caller's credentials give it.
func (o *opening) sign(f *aip.Frame, names bool) {
	if names && o.named.Sender != string(o.as) {
		f.Append(aip.AppendSender(nil, string(o.as)))
	}
}

// traceOf returns the W3C traceparent of a call; empty where it has none.
func traceOf(ctx context.Context) string {
	if all := metadata.ValueFromIncomingContext(ctx, "traceparent"); len(all) == 1 {
		return all[0]
	}
	return ""
}
