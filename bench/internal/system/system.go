// Package system starts what is compared: each system of processes of its own,
// on loopback, empty, and as its own documentation sets it up.
package system

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agora-relay/agora/bench/internal/aip"
	"github.com/agora-relay/agora/bench/internal/proc"
	"github.com/agora-relay/agora/bench/internal/wire"
	"github.com/agora-relay/agora/internal/loadgen"
)

// patience is how long a server may take to be ready.
const patience = 30 * time.Second

// Kind is a system that can be started.
type Kind struct {
	Name    string
	About   string // what runs, in a few words
	Keeps   string // what is stored of each message, and where
	Foreign bool   // needs more than Go to be installed
	Resumes bool   // a client that was away gets what it missed
	Aside   bool   // no rival, but part of an argument: run only when it is named
	AIP     bool   // carries calls of AIP, and nothing else

	start func(ctx context.Context, r *Running) error
}

// Kinds lists every system; the first is what the others are held against.
var Kinds = []Kind{
	{Name: "core", About: "NATS over TCP, 2 servers", Keeps: "nothing", start: startCore},
	{Name: "nats-ws", About: "NATS over its WebSocket, 2 servers", Keeps: "nothing", start: startNATSWebSocket},
	{Name: "forwarded", About: "nats-ws behind 2 processes that hand on bytes", Keeps: "nothing", Aside: true, start: startForwarded},
	{Name: "nats-js", About: "NATS over its WebSocket, 2 servers, JetStream with RePublish", Keeps: "R1, file", start: jetStream(2, 1)},
	{Name: "nats-js-r3", About: "the same with 3 servers and copies", Keeps: "R3, file", Aside: true, start: jetStream(3, 3)},
	{Name: "socketio", About: "Socket.IO 4, 2 Node processes, Redis Streams adapter, connection state recovery", Keeps: "Redis, memory", Foreign: true, Resumes: true, start: startSocketIO},
	{Name: "agora-mem", About: "Agora, 2 edges, Redis, 1 NATS server", Keeps: "R1, memory", Resumes: true, start: agora{servers: 1, storage: "memory"}.start},
	{Name: "agora-r1", About: "Agora, 2 edges, Redis, 1 NATS server", Keeps: "R1, file", Resumes: true, start: agora{servers: 1, storage: "file"}.start},
	{Name: "agora-r3", About: "Agora, 2 edges, Redis, 3 NATS servers", Keeps: "R3, file", Resumes: true, start: agora{servers: 3, storage: "file"}.start},
	{Name: "iat-socket", About: "agora-r1 whose agents say envelopes by WebSocket", Keeps: "R1, file", Aside: true, start: iat(bySocket)},
	{Name: "iat-events", About: "agora-r1 whose receivers take events over HTTP/2, a connection each", Keeps: "R1, file", Aside: true, start: iat(events2)},
	{Name: "iat-events1", About: "the same over HTTP/1.1", Keeps: "R1, file", Aside: true, start: iat(events1)},
	{Name: "iat-shared", About: "the same over HTTP/2, a hundred at a connection", Keeps: "R1, file", Aside: true, start: iat(sharing)},
	{Name: "iat-post", About: "iat-events whose senders post each envelope", Keeps: "R1, file", Aside: true, start: iat(posting2)},
	{Name: "iat-post1", About: "the same over HTTP/1.1", Keeps: "R1, file", Aside: true, start: iat(posting1)},
	{Name: "aip-direct", About: "programs of AIP that call each other, by gRPC", Keeps: "nothing", Aside: true, AIP: true, start: startAIPDirect},
	{Name: "aip-proxy", About: "the same through nginx, 2 workers", Keeps: "nothing", Foreign: true, Aside: true, AIP: true, start: startAIPProxy},
	{Name: "aip-bare", About: "the same through 2 gateways of gRPC's Go library that do nothing else", Keeps: "nothing", Aside: true, AIP: true, start: startAIPBare},
	{Name: "aip-agora", About: "the same through Agora, 2 edges, Redis, 1 NATS server", Keeps: "nothing", Aside: true, AIP: true, start: startAIPAgora},
}

// iat starts a cluster like agora-r1 whose agents come by other doors.
func iat(doors func(token string) dial) func(context.Context, *Running) error {
	return agora{servers: 1, storage: "file", doors: doors}.start
}

// Running is a system that runs. It is a [measure.Target].
type Running struct {
	tools *Tools
	dir   string
	procs []*proc.Process
	addrs []string // where agents connect
	dial  dial
	aip   func(addr string) (*aip.Client, error) // nil where nobody calls by AIP

	release func() // called before it is stopped; nil for nothing
}

// Start starts a system and returns when agents can connect. It keeps what it
// stores in a folder under dir, until it is stopped.
func (k Kind) Start(ctx context.Context, t *Tools, dir string) (*Running, error) {
	dir, err := os.MkdirTemp(dir, "bench-"+k.Name+"-")
	if err != nil {
		return nil, err
	}
	r := &Running{tools: t, dir: dir}
	if err := k.start(ctx, r); err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// Stop ends all of it and removes what it stored.
func (r *Running) Stop() {
	if r.release != nil {
		r.release()
	}
	for i := len(r.procs) - 1; i >= 0; i-- {
		r.procs[i].Stop()
	}
	_ = os.RemoveAll(r.dir) // in a folder for temporary files
}

// Servers implements measure.Target.
func (r *Running) Servers() int { return len(r.addrs) }

// Dial connects an agent to a server.
func (r *Running) Dial(ctx context.Context, as loadgen.Role, id string, server int) (loadgen.Agent, error) {
	if r.dial == nil {
		return nil, loadgen.ErrNone
	}
	return r.dial(ctx, as, r.addrs[server%len(r.addrs)], id)
}

// Resume connects an agent again, if its protocol knows how to.
func (r *Running) Resume(ctx context.Context, a loadgen.Agent, server int) (loadgen.Agent, error) {
	addr := r.addrs[server%len(r.addrs)]
	switch a := a.(type) {
	case *wire.Agora:
		return a.Resume(ctx, addr)
	case *wire.SocketIO:
		return a.Resume(ctx, addr)
	}
	return nil, loadgen.ErrNone
}

// Usage tells what all servers have used together. Those that agents connect to are the last ones that were started,
// one at each address.
func (r *Running) Usage() *loadgen.Look {
	u := new(loadgen.Look)
	for i, p := range r.procs {
		cpu := p.CPU()
		u.CPU += cpu
		u.RSS += p.RSS()
		if i >= len(r.procs)-len(r.addrs) {
			u.Edges += cpu
			u.Held += p.Held()
		}
	}
	return u
}

// Ended returns which server has ended by itself, and what it said last; nil while all run.
func (r *Running) Ended() error {
	for _, p := range r.procs {
		if err := p.Ended(); err != nil {
			return err
		}
	}
	return nil
}

// run starts a process of the system.
func (r *Running) run(name string, argv ...string) (*proc.Process, error) {
	var env []string
	if r.tools.Procs > 0 {
		env = []string{fmt.Sprintf("GOMAXPROCS=%d", r.tools.Procs)}
	}
	p, err := proc.Start(r.dir, name, env, argv...)
	if err == nil {
		r.procs = append(r.procs, p)
	}
	return p, err
}

// file writes a file into the system's folder and returns its path.
func (r *Running) file(name, text string) (string, error) {
	path := filepath.Join(r.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}
