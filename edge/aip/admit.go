package aip

import (
	"context"
	"errors"
	"net/netip"
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

// caller is who makes a call that was let in. It is the connection of the call's admission.
type caller struct {
	actor     *edge.Actor
	admission edge.Admission
	stop      context.CancelCauseFunc
	watches   bool // the call only watches, and is made again elsewhere: guarded by the mu of activeCalls
}

// callerKey finds a caller in the context of its call.
type callerKey struct{}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// open says what anybody may ask: what balances load and probes has no credentials, and an edge says of itself that it is no node.
func open(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.") || method == aip.IdentifyMethod
}

// interceptor lets calls in, ends those that may not go on, and returns their errors as statuses.
type interceptor struct {
	*shared
	refusals *edge.RefusalLog
	active   activeCalls
}

// unary lets a call in, and returns its errors as statuses.
func (i *interceptor) unary(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if open(info.FullMethod) {
		return handle(ctx, in)
	}
	ctx, done, err := i.admit(ctx)
	if err != nil {
		return nil, i.refused(info.FullMethod, err)
	}
	defer done()
	if err := i.passes(ctx); err != nil {
		return nil, i.failed(ctx, err)
	}
	out, err := handle(ctx, in)
	return out, i.failed(ctx, err)
}

// stream is unary for streams.
func (i *interceptor) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if open(info.FullMethod) {
		return handle(srv, s)
	}
	ctx, done, err := i.admit(s.Context())
	if err != nil {
		return i.refused(info.FullMethod, err)
	}
	defer done()
	if err := i.passes(ctx); err != nil {
		return i.failed(ctx, err)
	}
	return i.failed(ctx, handle(srv, &stream{s, ctx}))
}

// stream is a stream with the context of its caller.
type stream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s *stream) Context() context.Context { return s.ctx }

// admit lets a call in, also while log or presence are away: sessions with nodes need neither. The context that it returns ends with the call, its credentials and the edge; done is to be called when the call is over.
func (i *interceptor) admit(ctx context.Context) (_ context.Context, done func(), err error) {
	creds, err := credentialsOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	auth, cancel := context.WithTimeout(ctx, authTime)
	defer cancel()
	a, err := i.node.Admit(auth, i.from(ctx), creds)
	if err != nil {
		return nil, nil, err
	}
	ended := i.cfg.Admitted(ctx)
	a.Actor.CountTogether()
	c := &caller{actor: a.Actor, admission: a}
	ctx, end := early(context.WithValue(ctx, callerKey{}, c))
	ctx, c.stop = context.WithCancelCause(ctx)
	done = func() {
		i.active.remove(c)
		c.stop(nil)
		end()
		a.Release()
		ended()
	}
	if !i.active.add(c) {
		done()
		return nil, nil, errGone
	}
	a.Attach(c)
	return ctx, done, nil
}

// early returns a context that ends a moment before the deadline of a call. At that gRPC resets the stream, and a caller of another language whose own
// timer is a little later takes that for CANCELLED: so the status comes first.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	at, has := ctx.Deadline()
	if !has {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, at.Add(-min(20*time.Millisecond, time.Until(at)/10)))
}

// authTime bounds how long a call waits for its credentials to be verified.
const authTime = 10 * time.Second

// Held implements admission.Sheddable: what waits for a call is counted where it is kept.
func (c *caller) Held() (int64, bool) { return 0, false }

// Shed implements admission.Sheddable.
func (c *caller) Shed() {
	c.stop(&agora.Error{Code: agora.Unavailable, Message: edge.Overloaded.Text, RetryAfter: time.Second})
}

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

// cause returns why a call ends whose context is over: what ended it here, its deadline included, where that was not its caller.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
