package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/internal/trace"
)

// traceSettings say whether and where spans go.
type traceSettings struct {
	endpoint string
	sample   float64
}

func (s *traceSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.endpoint, "trace.endpoint", "", "OTLP/HTTP collector of OpenTelemetry that traces are sent to, such as http://127.0.0.1:4318; none are made if empty")
	f.Float64Var(&s.sample, "trace.sample", 0.01, "of messages that belong to no trace, how many begin one, from 0 to 1; those of a trace do as it says")
}

func (s *traceSettings) faults() []error {
	all := []error{unless(s.sample >= 0 && s.sample <= 1, "trace.sample must be from 0 to 1")}
	if s.endpoint != "" {
		if err := trace.Check(s.endpoint); err != nil {
			all = append(all, fmt.Errorf("trace.endpoint: %w", err))
		}
	}
	return all
}

// open returns what makes an edge's spans; nil where none are made.
func (s *traceSettings) open(ctx context.Context, edge string, log *slog.Logger) (*trace.Tracer, error) {
	if s.endpoint == "" {
		return nil, nil
	}
	return trace.Open(ctx, trace.Config{Endpoint: s.endpoint, Sample: s.sample, Edge: edge, Version: version(), Log: log})
}

// traceTime bounds how long an edge that ends sends its last spans.
const traceTime = 2 * time.Second

// closeTracer sends the last spans.
func closeTracer(t *trace.Tracer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), traceTime)
	defer cancel()
	warn(log, "the last spans were not sent", t.Close(ctx))
}
