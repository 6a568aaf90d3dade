package serve

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// adminHandler serves what operators ask of an edge, on a port of its own:
// /healthz (the process lives), /readyz (it can serve agents) and /metrics for everybody; /v1/… and, where it
// is switched on, /debug/pprof, and control where there is one, for those whom the gate lets in.
func (e *edgeServer) adminHandler(s config.Admin, control http.Handler) http.Handler {
	mux := adminMux(e.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(newRegistry(e), promhttp.HandlerOpts{}))
	g := gate{tokenFile: s.TokenFile}
	mux.Handle("/v1/", g.guard(e.operatorHandler()))
	if control != nil {
		mux.Handle("/v1/dev/", g.guard(control))
	}
	if s.Pprof {
		mux.Handle("/debug/pprof/", g.guard(profiles()))
	}
	return mux
}

// startingHandler answers operators before there is an edge.
func startingHandler() http.Handler {
	return adminMux(func() error { return errors.New("the edge is starting") })
}

func adminMux(ready func() error) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	return mux
}
