package serve

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/presence"
)

// backends are what an edge rests on: what knows who agents are, presence, the log, and what collects spans.
type backends struct {
	auth     edge.Authenticator
	endAuth  func() // nil before there is any
	presence *presence.Store
	broker   *broker.Broker
	tracer   *trace.Tracer // nil where no spans are made
}

// connect connects an edge to them, or fails when ctx is over. The caller owes a call of close whether or not it fails.
func (b *backends) connect(ctx context.Context, p plan, edge string, log *slog.Logger) (err error) {
	if b.auth, b.endAuth, err = auth.Open(p.auth); err != nil {
		return err
	}
	b.presence = presence.New(p.presence)
	if err := b.presence.Await(ctx); err != nil {
		return err
	}
	if b.broker, err = broker.Connect(ctx, p.broker); err != nil {
		return err
	}
	if b.tracer, err = openTracer(ctx, p.Trace, edge, log); err != nil {
		return fmt.Errorf("trace.endpoint: %w", err)
	}
	return nil
}

// close ends what there is of them.
func (b *backends) close(log *slog.Logger) {
	if b.endAuth != nil {
		b.endAuth()
	}
	closeTracer(b.tracer, log)
	if b.broker != nil {
		b.broker.Close()
	}
	if b.presence != nil {
		warn(log, "presence was not closed", b.presence.Close())
	}
}
