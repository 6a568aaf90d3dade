// Package serve runs edges: one as a process for `agora edge`, a cluster of them in one for `agora dev`; their ports, their doors, and what
// operators ask and watch.
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
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/presence"
)

// edgeServer is one edge: its connections to log and presence, its node, its
// doors and their ports.
type edgeServer struct {
	name          string
	log           *slog.Logger
	fail          func(error) // what ends the edge while it runs
	public, admin *port
	grpc          *grpcPort // nil where there is none

	broker    *broker.Broker
	presence  *presence.Store
	node      *edge.Node
	tools     *tools.Guard
	unguard   func()              // ends looking after open tasks; nil before it does
	approvals *approval.Approvals // nil before there are any
	ws        *ws.Door            // one of the doors
	iat       *iat.Door           // another one; nil where it is off
	aip       *aip.Door           // and one more; nil where it is off
	p2p       *p2p.Door           // and the last; nil where it is off
	p2pAddr   string              // where it listens; empty for no such port
	doors     []door
	endAuth   func()       // nil before there is any
	proxies   edge.Proxies // whose word is taken about where agents connect from
	policy    policy.Policy
	endReload func()        // ends following files; nil before it does
	endTrim   func()        // ends giving memory back; nil before it does
	leaving   atomic.Bool   // no new agents should come
	tracer    *trace.Tracer // nil where no spans are made
}

// plan is what an edge is made of.
type plan struct {
	*config.Settings
	auth     auth.Config
	broker   broker.Config
	presence presence.Config  // with a Client, which is the edge's from then on
	peers    config.PeerKeys  // of the libp2p door
	again    *config.Reloader // how to read the settings again; nil where they stand in no file
	loopback bool             // pages of this machine may connect
	alone    bool             // nothing else is in the process
}

// places are the addresses of an edge's ports.
type places struct {
	public, admin string
	grpc, p2p     string // empty for no such port
}

// listen takes the ports of an edge. Until it has been started, agents are
// sent away and operators told that it is not ready.
func listen(name string, at places, s *config.Settings, log *slog.Logger, fail func(error)) (*edgeServer, error) {
	e := &edgeServer{name: name, log: log.With("edge", name), fail: fail, p2pAddr: at.p2p}
	if err := e.open(at, s); err != nil {
		e.closePorts()
		return nil, err
	}
	e.admin.serve(startingHandler())
	return e, nil
}

// open opens the ports.
func (e *edgeServer) open(at places, s *config.Settings) (err error) {
	public := publicPort(&s.Server)
	if s.Server.ProxyProtocol {
		public.proxies = &e.proxies
	}
	if e.public, err = openPort(at.public, public, e.log, e.fail); err != nil {
		return err
	}
	if at.grpc != "" {
		if e.grpc, err = openGRPC(at.grpc, public, e.log); err != nil {
			return err
		}
	}
	e.admin, err = openPort(at.admin, adminPort(&s.Server), e.log, e.fail)
	return err
}

// closePorts ends those ports that there are, but for what operators ask.
func (e *edgeServer) closePorts() {
	if e.public != nil {
		e.public.close()
	}
	if e.grpc != nil {
		e.grpc.close()
	}
}

// start connects the edge and serves agents, or fails when ctx is over.
func (e *edgeServer) start(ctx context.Context, p plan) error {
	who, end, err := auth.Open(p.auth)
	if err != nil {
		return err
	}
	e.endAuth = end
	e.presence = presence.New(p.presence)
	if err := e.presence.Await(ctx); err != nil {
		return err
	}
	if e.broker, err = broker.Connect(ctx, p.broker); err != nil {
		return err
	}
	nc := p.Node(e.name, e.log)
	nc.Lease, nc.Broker, nc.Presence, nc.Auth = p.presence.Lease, e.broker, e.presence, who
	nc.Superseded, nc.Proxies, nc.Policy = e.fail, &e.proxies, &e.policy
	e.guard(p)
	e.approvals = approval.New(approval.Config{Book: e.broker.Book(), Now: e.broker.Now, Expiry: p.IAT.Expiry, Log: e.log})
	nc.Approvals = e.approvals
	sources, err := e.sources(p)
	if err != nil {
		return err
	}
	if e.tracer, err = openTracer(ctx, p.Trace, e.name, e.log); err != nil {
		return fmt.Errorf("trace.endpoint: %w", err)
	}
	nc.Tracer = e.tracer
	if e.node, err = edge.Start(ctx, nc); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	e.node.Restores(e.tools.Restore)
	e.reload(sources)
	if err := e.openDoors(p); err != nil {
		return err
	}
	e.endTrim = e.trimMemory(p.alone)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", introduce)
	for _, d := range e.doors {
		d.mount(mux)
	}
	e.public.serve(mux)
	e.admin.serve(e.adminHandler(p.Admin))
	return e.ready()
}

// ready returns nil while new agents should come to this edge, else why not.
func (e *edgeServer) ready() error {
	if e.leaving.Load() {
		return errors.New("the edge is about to end")
	}
	return e.node.Ready()
}

// leave has the edge say that it is not ready, so that no new agents are sent
// to it; those that come all the same are served until it drains.
func (e *edgeServer) leave() { e.leaving.Store(true) }

// drain hands the edge's agents over, returns when none is left or ctx is over, and says how it went.
func (e *edgeServer) drain(ctx context.Context) {
	e.leave()
	begun := time.Now()
	e.public.drain()
	var doors sync.WaitGroup
	for _, d := range e.doors {
		doors.Go(func() { d.drain(ctx) })
	}
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
	if e.endReload != nil {
		e.endReload()
	}
	if e.endTrim != nil {
		e.endTrim()
	}
	e.eachDoor(door.close)
	e.closePorts()
	if e.node != nil {
		e.node.Close()
	}
	e.eachDoor(door.wait)
	if e.approvals != nil {
		e.approvals.Close()
	}
	if e.unguard != nil {
		e.unguard()
	}
	if e.endAuth != nil {
		e.endAuth()
	}
	e.admin.close()
	closeTracer(e.tracer, e.log)
	if e.broker != nil {
		e.broker.Close()
	}
	if e.presence != nil {
		warn(e.log, "presence was not closed", e.presence.Close())
	}
}

// eachDoor does something with every door that there is, all at once.
func (e *edgeServer) eachDoor(do func(door)) {
	var all sync.WaitGroup
	for _, d := range e.doors {
		all.Go(func() { do(d) })
	}
	all.Wait()
}

// introduce says what this is to whoever opens the port in a browser.
func introduce(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, introduction) // who asked may have gone
}

const introduction = `This is an edge of Agora, a relay for AI agents.

Agents connect by WebSocket, at /ws; programs ask over HTTP, as for /agents. Readiness, metrics and what operators ask are at another port.
See https://github.com/agora-relay/agora
`
