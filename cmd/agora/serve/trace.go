package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/version"
	"github.com/agora-relay/agora/internal/trace"
)

// openTracer returns what makes an edge's spans; nil where none are made.
func openTracer(ctx context.Context, s config.Trace, edge string, log *slog.Logger) (*trace.Tracer, error) {
	if s.Endpoint == "" {
		return nil, nil
	}
	return trace.Open(ctx, trace.Config{Endpoint: s.Endpoint, Sample: s.Sample, Edge: edge, Version: version.String(), Log: log})
}

// traceTime bounds how long an edge that ends sends its last spans.
const traceTime = 2 * time.Second

// closeTracer sends the last spans.
func closeTracer(t *trace.Tracer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), traceTime)
	defer cancel()
	warn(log, "the last spans were not sent", t.Close(ctx))
}
