package aip

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/wire/aip"
)

// callerKey finds a caller in the context of its call.
type callerKey struct{}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// open says what anybody may ask: what balances load and probes has no credentials, and an edge says of itself that it
// is no node.
func open(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.") || method == aip.IdentifyMethod
}

// interceptor lets calls in, ends those that may not go on, and returns their errors as statuses.
type interceptor struct {
	*shared
	refusals *edge.RefusalLog
	active   activeCalls
}

// unary lets a call of one message each way in before that is read, and returns its errors as statuses.
func (i *interceptor) unary(ctx context.Context, method string, srv any, handle grpc.MethodHandler) (any, error) {
	ctx, in, done, err := i.enter(ctx, method)
	if err != nil {
		return nil, i.refused(method, err)
	}
	defer done()
	if err := i.passes(ctx); err != nil && !open(method) {
		return nil, i.failed(ctx, err)
	}
	in.by.come()
	out, err := handle(srv, ctx, in.RecvMsg, nil)
	return out, i.failed(ctx, err)
}

// stream is unary for streams.
func (i *interceptor) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, in, done, err := i.enter(s.Context(), info.FullMethod)
	if err != nil {
		return i.refused(info.FullMethod, err)
	}
	defer done()
	if err := i.passes(ctx); err != nil && !open(info.FullMethod) {
		return i.failed(ctx, err)
	}
	in.ServerStream, in.many = s, info.IsClientStream
	if c := callerOf(ctx); c != nil {
		c.many = in.many
	}
	if !in.many {
		in.by.come()
	}
	return i.failed(ctx, handle(srv, in))
}

// bounded is a service whose methods of one message each way are served by [interceptor.unary].
func (i *interceptor) bounded(s *grpc.ServiceDesc) *grpc.ServiceDesc {
	own := *s
	own.Methods = slices.Clone(s.Methods)
	for k, m := range s.Methods {
		method := "/" + s.ServiceName + "/" + m.MethodName
		own.Methods[k].Handler = func(srv any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			return i.unary(ctx, method, srv, m.Handler)
		}
	}
	return &own
}

// strangerMessage is how many bytes a message may have whose sender shows no credentials.
const strangerMessage = 4 << 10

// enter lets a call in, by its credentials or as a stranger's, and returns what reads its messages. The context that it
// returns ends with the call, its credentials and the edge; done is to be called when the call is over.
func (i *interceptor) enter(ctx context.Context, method string) (_ context.Context, in *messages, done func(), err error) {
	arrived(ctx)
	if open(method) {
		ctx, c := i.stranger(ctx)
		if in, err = messagesOf(ctx, c, min(strangerMessage, i.cfg.MaxMessage)); err != nil {
			c.leave()
			return nil, nil, nil, err
		}
		return ctx, in, c.leave, nil
	}
	defer settled(ctx)
	ctx, c, done, err := i.admit(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if in, err = messagesOf(ctx, c, i.cfg.MaxMessage); err != nil {
		done()
		return nil, nil, nil, err
	}
	return ctx, in, done, nil
}

// admit lets a call in by its credentials, also while log or presence are away: sessions with nodes need neither.
func (i *interceptor) admit(ctx context.Context) (_ context.Context, c *caller, done func(), err error) {
	creds, err := credentialsOf(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	auth, cancel := context.WithTimeout(ctx, authTime)
	defer cancel()
	a, err := i.node.Admit(auth, i.from(ctx), creds)
	if err != nil {
		return nil, nil, nil, err
	}
	ended := i.cfg.Admitted(ctx)
	a.Actor.CountTogether()
	c = &caller{actor: a.Actor, admission: a, interrupt: interruptOf(ctx)}
	c.kept.Owned(i.node.Usage(), a.Actor.Owner(""))
	ctx, end := early(context.WithValue(ctx, callerKey{}, c))
	ctx, c.stop = context.WithCancelCause(ctx)
	c.ctx = ctx
	done = func() {
		i.active.remove(c)
		c.kept.Close()
		c.stop(nil)
		end()
		a.Release()
		ended()
	}
	if !i.active.add(c) {
		done()
		return nil, nil, nil, errGone
	}
	a.Attach(c)
	return ctx, c, done, nil
}

// unreached counts a call that reaches nobody, and returns why: it has said nothing to anybody that would count.
func (c *caller) unreached(as agora.AgentID, err error) error {
	return cmp.Or(c.actor.SpendBeside(as), err)
}

// early returns a context that ends a moment before the deadline of a call. At that gRPC resets the stream, and a
// caller of another language whose own timer is a little later takes that for CANCELLED: so the status comes first.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	at, has := ctx.Deadline()
	if !has {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, at.Add(-min(20*time.Millisecond, time.Until(at)/10)))
}

// authTime bounds how long a call waits for its credentials to be verified.
const authTime = 10 * time.Second

// from returns where a call comes from, by the word of trusted proxies.
func (i *interceptor) from(ctx context.Context) (from netip.Addr) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return from
	}
	forwarded := metadata.ValueFromIncomingContext(ctx, "x-forwarded-for")
	if at, is := p.Addr.(interface{ AddrPort() netip.AddrPort }); is {
		return i.node.Config().Proxies.ClientBehind(at.AddrPort().Addr(), forwarded)
	}
	return i.node.Config().Proxies.Client(p.Addr.String(), forwarded)
}

// credentialsOf returns what a call presents: a token in its metadata, the certificate of its connection.
func credentialsOf(ctx context.Context) (c edge.Credentials, err error) {
	all := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(all) > 1 {
		return c, agora.Errorf(agora.InvalidRequest, "metadata authorization stands twice")
	}
	if len(all) == 1 {
		if scheme, t, _ := strings.Cut(all[0], " "); strings.EqualFold(scheme, "Bearer") {
			c.Token = strings.TrimSpace(t)
		}
	}
	if p, ok := peer.FromContext(ctx); ok {
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(t.State.VerifiedChains) > 0 {
			c.Peer = t.State.VerifiedChains[0]
		}
	}
	return c, nil
}

// cause returns why a call ends whose context is over: what ended it here, its deadline included, where that was not
// its caller.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
