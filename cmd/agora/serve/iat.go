package serve

import (
	"context"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/tools"
	wireiat "github.com/agora-relay/agora/wire/iat"
)

// iatDoor is the door for the IAT dialect. Its requests are drained with those of all doors over HTTP, its agents with
// all sessions.
type iatDoor struct{ *iat.Door }

func (d iatDoor) name() string { return "iat" }

func (d iatDoor) mount(mux *http.ServeMux) { d.Mount(mux) }

func (d iatDoor) metrics(r *prometheus.Registry) { registerIAT(r, d.Stats()) }

func (d iatDoor) drain(context.Context) {}

func (d iatDoor) close() {}

func (d iatDoor) wait() { d.Wait() }

// guard makes what checks calls of tools.
func (e *edgeServer) guard(p plan) {
	e.tools = tools.NewGuard(tools.GuardConfig{
		Config: tools.Config{Tools: p.IAT.Tools, Schema: int(p.IAT.Schema), Time: p.IAT.CheckTime}, Presence: e.backends.presence, Now: e.backends.broker.Now,
		Root: wireiat.RootOf, Resolve: p.IAT.Resolve, TaskTime: p.IATDoor(e.log).MaxWait, Log: e.log,
	})
	ctx, stop := context.WithCancel(context.Background())
	var looks sync.WaitGroup
	looks.Go(func() { e.tools.Run(ctx) })
	e.unguard = func() {
		stop()
		looks.Wait()
	}
}
