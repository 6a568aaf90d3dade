package main

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/tools"
	wireiat "github.com/agora-relay/agora/wire/iat"
)

// iatSettings are those of the IAT door, and of tools and approvals, which all doors share.
type iatSettings struct {
	on                 onOff
	keepAlive, maxWait time.Duration
	expiry, keep       time.Duration
	resolve            bool
	tools              int
	schema             size
}

// flags defines the flags; resolve is the default of workspace.resolve.
func (s *iatSettings) flags(f *pflag.FlagSet) {
	s.on = true
	f.Var(&s.on, "iat", "serve agents of the IAT dialect, at /a2a")
	f.DurationVar(&s.keepAlive, "iat.keep-alive", 15*time.Second, "between two comments on a quiet IAT downlink")
	f.DurationVar(&s.maxWait, "iat.max-wait", 10*time.Minute, "how long an IAT request waits for its response at most, and how long its execute may call tools")
	f.DurationVar(&s.expiry, "approvals.expiry", 10*time.Minute, "how long a request for approval waits for a decision before it counts as denied")
	f.DurationVar(&s.keep, "approvals.keep", 24*time.Hour, "how long a request for approval and its decision are kept; the same at every edge")
	f.IntVar(&s.tools, "limits.tools", 256, "tools that one agent may register")
	s.schema = 64 << 10
	f.Var(&s.schema, "limits.schema", "size of the JSON Schema of a tool's input or output")
}

// resolveFlag defines workspace.resolve, whose default depends on whether the edge is expected to see the agents' files.
func (s *iatSettings) resolveFlag(f *pflag.FlagSet, on bool) {
	f.BoolVar(&s.resolve, "workspace.resolve", on, "follow symbolic links in the paths of tool calls, where the edge sees the workspace; `agora dev` does, if it is not told")
}

func (s *iatSettings) faults() []error {
	return []error{
		unless(s.keepAlive >= time.Second, "iat.keep-alive must be at least 1s"),
		unless(s.maxWait >= time.Second && s.maxWait <= 24*time.Hour, "iat.max-wait must be 1s to 24h"),
		unless(s.expiry >= time.Second, "approvals.expiry must be at least 1s"),
		unless(s.keep >= s.expiry, "approvals.keep can't be shorter than approvals.expiry"),
		unless(s.tools >= 1 && s.tools <= 256, "limits.tools must be 1 to 256"),
		unless(s.schema >= 1<<10 && s.schema <= 256<<10, "limits.schema must be 1KiB to 256KiB"),
	}
}

// door returns how the IAT door of an edge is set up, but for what it shares with other doors.
func (s *settings) iatDoor(log *slog.Logger) iat.Config {
	return iat.Config{
		KeepAlive: s.iat.keepAlive, MaxWait: s.iat.maxWait, Frame: int(s.frame), MaxErrors: s.errors,
		Limits: wireiat.Limits{Depth: s.depth, Name: s.name}, Log: log,
	}
}

// iatDoor is the door for the IAT dialect. Its requests are drained with those of all doors over HTTP, its agents with all sessions.
type iatDoor struct{ *iat.Door }

func (d iatDoor) name() string                   { return "iat" }
func (d iatDoor) mount(mux *http.ServeMux)       { d.Mount(mux) }
func (d iatDoor) metrics(r *prometheus.Registry) { registerIAT(r, d.Stats()) }
func (d iatDoor) drain(context.Context)          {}
func (d iatDoor) close()                         {}
func (d iatDoor) wait()                          { d.Wait() }

// guard makes what checks calls of tools.
func (e *edgeServer) guard(p plan) {
	e.tools = tools.NewGuard(tools.GuardConfig{
		Config: tools.Config{Tools: p.iat.tools, Schema: int(p.iat.schema)}, Presence: e.presence, Now: e.broker.Now,
		Root: wireiat.RootOf, Resolve: p.iat.resolve, Log: e.log,
	})
	ctx, stop := context.WithCancel(context.Background())
	var looks sync.WaitGroup
	looks.Go(func() { e.tools.Run(ctx) })
	e.unguard = func() {
		stop()
		looks.Wait()
	}
}
