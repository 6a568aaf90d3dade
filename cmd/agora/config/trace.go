package config

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/internal/trace"
)

// Trace say whether and where spans go.
type Trace struct {
	Endpoint string
	Sample   float64
}

func (s *Trace) flags(f *pflag.FlagSet) {
	f.StringVar(&s.Endpoint, "trace.endpoint", "", "OTLP/HTTP collector of OpenTelemetry that traces are sent to, such as http://127.0.0.1:4318; none are made if empty")
	f.Float64Var(&s.Sample, "trace.sample", 0.01, "of messages that belong to no trace, how many begin one, from 0 to 1; those of a trace do as it says")
}

func (s *Trace) faults() []error {
	all := []error{unless(s.Sample >= 0 && s.Sample <= 1, "trace.sample must be from 0 to 1")}
	if s.Endpoint != "" {
		if err := trace.Check(s.Endpoint); err != nil {
			all = append(all, fmt.Errorf("trace.endpoint: %w", err))
		}
	}
	return all
}
