// Package serve runs edges: one as a process for `agora edge`, a cluster of them in one for `agora dev`; their ports,
// their doors, and what operators ask and watch.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/presence"
)

// edgeServer is one edge: its ports, what it is connected to, its node and its doors.
type edgeServer struct {
	name       string
	log        *slog.Logger
	fail       func(error) // what ends the edge while it runs
	ports      ports
	backends   backends
	proxies    edge.Proxies // whose word is taken about where agents connect from
	policy     policy.Policy
	node       *edge.Node
	approvals  *approval.Approvals // nil before there are any
	tools      *tools.Guard
	doors      doors
	unguard    func()      // ends looking after open tasks; nil before it does
	endReload  func()      // ends following files; nil before it does
	endTrim    func()      // ends giving memory back; nil before it does
	endPodCost func()      // ends telling Kubernetes how many sessions there are; nil where nobody does
	leaving    atomic.Bool // no new agents should come
	dead       atomic.Bool // it was killed
}

// plan is what an edge is made of.
type plan struct {
	*config.Settings
	auth     auth.Config
	broker   broker.Config
	presence presence.Config  // with a Client, which is the edge's from then on
	peers    config.PeerKeys  // of the libp2p door
	again    *config.Reloader // how to read the settings again; nil where they stand in no file
	alone    bool             // nothing else is in the process
	control  http.Handler     // kills and starts edges, for operators; nil but in `agora dev`
}

// listen takes the ports of an edge. Until it has been started, agents are
// sent away and operators told that it is not ready.
func listen(name string, at places, s *config.Settings, log *slog.Logger, fail func(error)) (*edgeServer, error) {
	e := newEdge(name, log, fail)
	if err := e.ports.open(at, s, &e.proxies, e.log, e.fail); err != nil {
		e.ports.close()
		return nil, err
	}
	e.ports.admin.serve(startingHandler())
	return e, nil
}

// newEdge returns an edge that has no ports yet. What fails once it is dead concerns nobody.
func newEdge(name string, log *slog.Logger, fail func(error)) *edgeServer {
	e := &edgeServer{name: name, log: log.With("edge", name)}
	e.fail = func(err error) {
		if !e.dead.Load() {
			fail(err)
		}
	}
	return e
}

// start connects the edge and serves agents, or fails when ctx is over.
func (e *edgeServer) start(ctx context.Context, p plan) error {
	if err := e.backends.connect(ctx, p, e.name, e.log); err != nil {
		return err
	}
	at := &e.backends
	nc := p.Node(e.name, e.log)
	nc.Lease, nc.Broker, nc.Presence, nc.Auth, nc.Tracer = p.presence.Lease, at.broker, at.presence, at.auth, at.tracer
	nc.Superseded, nc.Proxies, nc.Policy = e.fail, &e.proxies, &e.policy
	e.guard(p)
	e.approvals = approval.New(approval.Config{
		Book: at.broker.Book(), Now: at.broker.Now, Expiry: p.IAT.Expiry, Pending: nc.Limits.ClusterApprovals, Each: nc.Limits.Approvals, Log: e.log,
	})
	nc.Approvals = e.approvals
	sources, err := e.sources(p)
	if err != nil {
		return err
	}
	if e.node, err = edge.Start(ctx, nc); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	e.ports.limit(e.node)
	e.node.Restores(e.tools.Restore)
	e.reload(sources)
	if err := e.openDoors(p); err != nil {
		return err
	}
	e.endTrim = e.trimMemory(p.alone)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", introduce)
	for _, d := range e.doors.all {
		d.mount(mux)
	}
	e.ports.public.serve(mux)
	e.ports.admin.serve(e.adminHandler(p.Admin, p.control))
	return e.ready()
}

// ready returns nil while new agents should come to this edge, else why not.
func (e *edgeServer) ready() error {
	if e.leaving.Load() {
		return errors.New("the edge is about to end")
	}
	if err := e.node.Ready(); err != nil {
		return err
	}
	return e.node.Shedder().Ready()
}

// leave has the edge say that it is not ready, so that no new agents are sent
// to it; those that come nevertheless are served until it drains.
func (e *edgeServer) leave() { e.leaving.Store(true) }

// drain hands the edge's agents over, returns when none is left or ctx is over, and says how it went.
func (e *edgeServer) drain(ctx context.Context) {
	e.leave()
	begun := time.Now()
	e.ports.public.drain()
	var doors sync.WaitGroup
	doors.Go(func() { e.doors.each(func(d door) { d.drain(ctx) }) })
	d := e.node.Drain(ctx)
	doors.Wait()
	how := []any{"took", time.Since(begun).Round(time.Millisecond), "agents_handed_over", d.HandedOver, "agents_left", d.Left, "pending_bytes", d.Pending}
	if d.Left > 0 {
		e.log.Warn("drained in part: those left lose their connection, and may return within their grace", how...)
		return
	}
	e.log.Info("drained", how...)
}

// close ends whatever of the edge has been started.
func (e *edgeServer) close() {
	e.end()
	e.ports.admin.close()
	e.backends.close(e.log)
}

// end ends all but what it rests on and the admin port.
func (e *edgeServer) end() {
	if e.endReload != nil {
		e.endReload()
	}
	if e.endPodCost != nil {
		e.endPodCost()
	}
	if e.endTrim != nil {
		e.endTrim()
	}
	e.doors.each(door.close)
	e.ports.close()
	if e.node != nil {
		e.node.Close()
	}
	e.doors.each(door.wait)
	if e.approvals != nil {
		e.approvals.Close()
	}
	if e.unguard != nil {
		e.unguard()
	}
}

// introduce says what this is to the one who opens the port in a browser.
func introduce(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, introduction) // who asked may have gone
}

const introduction = `This is an edge of Agora, a relay for AI agents.

Agents connect by WebSocket, at /ws; programs ask over HTTP, as for /agents. Readiness, metrics and what operators ask are at another port.
See https://github.com/agora-relay/agora
`
