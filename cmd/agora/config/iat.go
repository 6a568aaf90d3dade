package config

import (
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge/iat"
	wireiat "github.com/agora-relay/agora/wire/iat"
)

// iatSettings are those of the IAT door, and of tools and approvals, which all doors share.
type iatSettings struct {
	On                 onOff
	keepAlive, maxWait time.Duration
	Expiry, keep       time.Duration
	Resolve            bool
	Tools              int
	Schema             size
	CheckTime          time.Duration
}

// flags defines the flags; resolve is the default of workspace.resolve.
func (s *iatSettings) flags(f *pflag.FlagSet) {
	s.On = true
	f.Var(&s.On, "iat", "serve agents of the IAT dialect, at /a2a")
	f.DurationVar(&s.keepAlive, "iat.keep-alive", 15*time.Second, "between two comments on a quiet IAT downlink")
	f.DurationVar(&s.maxWait, "iat.max-wait", 10*time.Minute, "how long an IAT request waits for its response at most, and how long its execute may call tools")
	f.DurationVar(&s.Expiry, "approvals.expiry", 10*time.Minute, "how long a request for approval waits for a decision before it counts as denied")
	f.DurationVar(&s.keep, "approvals.keep", 24*time.Hour, "how long a request for approval and its decision are kept; the same at every edge")
	f.IntVar(&s.Tools, "limits.tools", 256, "tools that one agent may register")
	s.Schema = 64 << 10
	f.Var(&s.Schema, "limits.schema", "size of the JSON Schema of a tool's input or output")
	f.DurationVar(&s.CheckTime, "limits.check-time", 250*time.Millisecond, "time of processors that checks of one principal's tool calls and schemas may take in each second at an edge; ten seconds' worth at once")
}

// resolveFlag defines workspace.resolve, whose default depends on whether the edge is expected to see the agents'
// files.
func (s *iatSettings) resolveFlag(f *pflag.FlagSet, on bool) {
	f.BoolVar(&s.Resolve, "workspace.resolve", on, "follow symbolic links in the paths of tool calls, where the edge sees the workspace; agora dev does, if it is not told")
}

func (s *iatSettings) faults() []error {
	return []error{
		unless(s.keepAlive >= time.Second, "iat.keep-alive must be at least 1s"),
		unless(s.maxWait >= time.Second && s.maxWait <= 24*time.Hour, "iat.max-wait must be 1s to 24h"),
		unless(s.Expiry >= time.Second, "approvals.expiry must be at least 1s"),
		unless(s.keep >= s.Expiry, "approvals.keep can't be shorter than approvals.expiry"),
		unless(s.Tools >= 1 && s.Tools <= 256, "limits.tools must be 1 to 256"),
		unless(s.CheckTime >= time.Millisecond && s.CheckTime <= time.Minute, "limits.check-time must be 1ms to 1m"),
		unless(s.Schema >= 1<<10 && s.Schema <= 256<<10, "limits.schema must be 1KiB to 256KiB"),
	}
}

// door returns how the IAT door of an edge is set up, but for what it shares with other doors.
func (s *Settings) IATDoor(log *slog.Logger) iat.Config {
	return iat.Config{
		KeepAlive: s.IAT.keepAlive, MaxWait: s.IAT.maxWait, Frame: int(s.limits.frame), MaxErrors: s.limits.errors,
		Limits: wireiat.Limits{Depth: s.limits.depth, Name: s.limits.name}, Log: log,
	}
}
