package config

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge"
)

// sessionSettings say how long agents are waited for, and taken to be there.
type sessionSettings struct{ grace, heartbeat, timeout, register time.Duration }

func (s *sessionSettings) flags(f *pflag.FlagSet) {
	f.DurationVar(&s.grace, "session.grace", 30*time.Second, "how long a session waits for an agent that lost its connection")
	f.DurationVar(&s.heartbeat, "session.heartbeat", 30*time.Second, "between signs of life to a quiet agent")
	f.DurationVar(&s.timeout, "session.timeout", time.Minute, "a connection silent for so long is dead")
	f.DurationVar(&s.register, "register.ttl", time.Hour, "how long an agent that registers without a connection is listed after its last sign, if it does not say so itself")
}

func (s *sessionSettings) faults() []error {
	return append(positive(map[string]time.Duration{"session.grace": s.grace, "session.heartbeat": s.heartbeat, "session.timeout": s.timeout}),
		unless(s.timeout >= s.heartbeat, "session.timeout can't be shorter than session.heartbeat"),
		unless(s.register >= edge.MinRegister && s.register <= edge.MaxRegister, "register.ttl must be 1m to 24h"))
}
