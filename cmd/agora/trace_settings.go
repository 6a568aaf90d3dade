package main

import (
	"fmt"

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
