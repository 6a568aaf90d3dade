// Package natsd runs NATS servers inside the process, with JetStream: one or a cluster of three, for dev and tests.
package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora/internal/endpoint"
	"github.com/agora-relay/agora/internal/pause"
)

// Config sets up an embedded NATS cluster.
type Config struct {
	Nodes      int    // 1 or 3; 1
	Dir        string // where JetStream keeps its files, one folder a node; empty: a temporary folder, removed on Shutdown
	MaxPayload int32  // 8 MiB
	Log        *slog.Logger
}

// Server is an embedded NATS cluster for dev and tests.
type Server struct {
	cfg    Config
	remove bool // the folder is ours
	routes []*url.URL

	mu    sync.Mutex // guards the field below
	nodes []*node
}

// node is one server of the cluster; it may be stopped and started again under the same ports.
type node struct {
	opts *server.Options
	srv  *server.Server // nil while it is stopped
	log  *nodeLog       // of srv
}

const (
	nodePatience = 20 * time.Second      // for a node to be ready, where the caller sets no limit
	nodePoll     = 20 * time.Millisecond // between two looks whether it is
	startTries   = 5                     // with other ports each time, where others took one before its node listened on it
	loopback     = "127.0.0.1"
)

// Embed starts the nodes on free loopback ports and returns when JetStream is ready, when a node can't start, or when
// ctx is over; within twenty seconds where it has no deadline. Where others take one of the ports meanwhile, it starts
// all nodes on other ones, a few times.
func Embed(ctx context.Context, cfg Config) (*Server, error) { return embed(ctx, cfg, freePorts) }

// embed is Embed, on ports that pick finds.
func embed(ctx context.Context, cfg Config, pick func(n int) ([]int, error)) (*Server, error) {
	if cfg.Nodes == 0 {
		cfg.Nodes = 1
	}
	if cfg.Nodes != 1 && cfg.Nodes != 3 {
		return nil, fmt.Errorf("%d embedded NATS nodes: choose 1 or 3", cfg.Nodes)
	}
	if cfg.MaxPayload == 0 {
		cfg.MaxPayload = 8 << 20
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg}
	if cfg.Dir == "" {
		dir, err := os.MkdirTemp("", "agora-nats-")
		if err != nil {
			return nil, fmt.Errorf("folder for the embedded NATS: %w", err)
		}
		s.cfg.Dir, s.remove = dir, true
	}
	if err := writable(s.cfg.Dir); err != nil { // the server itself would be long about it
		return nil, fmt.Errorf("folder for the embedded NATS: %w", err)
	}
	for try := 1; ; try++ {
		ports, err := pick(2 * cfg.Nodes)
		if err == nil {
			err = s.start(ctx, ports)
		}
		if err == nil {
			return s, nil
		}
		if !endpoint.Taken(err) || try == startTries {
			s.Shutdown()
			return nil, err
		}
		s.stop()
	}
}

// writable makes a folder where it is missing, and fails when nothing can be written there.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// start starts the nodes on ports, two for each, and waits until they are ready.
func (s *Server) start(ctx context.Context, ports []int) error {
	s.routes, s.nodes = nil, nil
	for k := range s.cfg.Nodes {
		s.routes = append(s.routes, &url.URL{Scheme: "nats", Host: net.JoinHostPort(loopback, strconv.Itoa(ports[2*k+1]))})
	}
	for k := range s.cfg.Nodes {
		s.nodes = append(s.nodes, &node{opts: s.options(k, ports[2*k], ports[2*k+1])})
		if err := s.StartNode(k); err != nil {
			return err
		}
	}
	return s.ready(ctx)
}

func (s *Server) options(k, port, clusterPort int) *server.Options {
	o := &server.Options{
		ServerName: "agora-" + strconv.Itoa(k),
		Host:       loopback,
		Port:       port,
		NoSigs:     true,
		JetStream:  true,
		StoreDir:   filepath.Join(s.cfg.Dir, "node-"+strconv.Itoa(k)),
		MaxPayload: s.cfg.MaxPayload,
	}
	if s.cfg.Nodes > 1 {
		o.Cluster = server.ClusterOpts{Name: "agora", Host: loopback, Port: clusterPort}
		for r, u := range s.routes {
			if r != k {
				o.Routes = append(o.Routes, u)
			}
		}
	}
	return o
}

// StartNode starts node k, the first time or again after StopNode, and does not wait for it.
func (s *Server) StartNode(k int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[k]
	if n.srv != nil {
		return nil
	}
	srv, err := server.NewServer(n.opts.Clone())
	if err != nil {
		return fmt.Errorf("embedded NATS node %d: %w", k, err)
	}
	n.srv, n.log = srv, &nodeLog{log: s.cfg.Log.With("node", k)}
	srv.SetLoggerV2(n.log, false, false, false)
	srv.Start()
	return nil
}

// StopNode stops node k as if its machine went away, and waits until it is gone.
func (s *Server) StopNode(k int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if srv := s.nodes[k].srv; srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		s.nodes[k].srv = nil
	}
}

// ready waits until every node takes connections and JetStream has a leader. It fails at once when a node can't start.
func (s *Server) ready(ctx context.Context) error {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, nodePatience)
		defer cancel()
	}
	for {
		if err := s.fatal(); err != nil {
			return err
		}
		if s.isReady() {
			return nil
		}
		if !pause.For(ctx, nodePoll) {
			return fmt.Errorf("embedded NATS is not ready: %w", ctx.Err())
		}
	}
}

// fatal returns why a node can't start.
func (s *Server) fatal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, n := range s.nodes {
		if err := n.log.fatal.Load(); err != nil {
			return fmt.Errorf("embedded NATS node %d: %w", k, *err)
		}
	}
	return nil
}

func (s *Server) isReady() bool {
	led := s.cfg.Nodes == 1
	for k := range s.cfg.Nodes {
		srv := s.node(k)
		if srv == nil || !srv.ReadyForConnections(nodePoll) || !srv.JetStreamEnabled() {
			return false
		}
		if s.cfg.Nodes > 1 && !srv.JetStreamIsCurrent() {
			return false
		}
		led = led || srv.JetStreamIsLeader()
	}
	return led
}

func (s *Server) node(k int) *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[k].srv
}

// Clients returns how many connections node k has; 0 while it is stopped.
func (s *Server) Clients(k int) int {
	if srv := s.node(k); srv != nil {
		return srv.NumClients()
	}
	return 0
}

// URL returns the addresses of the nodes, comma-separated.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var urls []string
	for _, n := range s.nodes {
		urls = append(urls, "nats://"+net.JoinHostPort(loopback, strconv.Itoa(n.opts.Port)))
	}
	return strings.Join(urls, ",")
}

// Option returns a connection option that reaches node k inside the process, without a socket.
func (s *Server) Option(k int) nats.Option { return nats.InProcessServer(inside{s, k}) }

// inside reaches a node wherever it is now: a node started again is another server.
type inside struct {
	s *Server
	k int
}

// InProcessConn returns a connection to the node.
func (i inside) InProcessConn() (net.Conn, error) {
	srv := i.s.node(i.k)
	if srv == nil {
		return nil, errors.New("embedded NATS node is stopped")
	}
	return srv.InProcessConn()
}

// StepDown has a stream's leader give up its place, as a node going down does. In a cluster another
// node takes over; it fails where there is none.
func (s *Server) StepDown(ctx context.Context, stream string) error {
	nc, err := nats.Connect(s.URL())
	if err != nil {
		return err
	}
	defer nc.Close()
	m, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil)
	if err != nil {
		return fmt.Errorf("step-down of %s: %w", stream, err)
	}
	if strings.Contains(string(m.Data), `"error"`) {
		return fmt.Errorf("step-down of %s: %s", stream, m.Data)
	}
	return nil
}

// stop stops every node and waits for it.
func (s *Server) stop() {
	for k := range s.nodes {
		s.StopNode(k)
	}
}

// Shutdown stops every node and waits for it.
func (s *Server) Shutdown() {
	s.stop()
	if s.remove {
		if err := os.RemoveAll(s.cfg.Dir); err != nil {
			s.cfg.Log.Warn("folder of the embedded NATS", "err", err)
		}
	}
}
