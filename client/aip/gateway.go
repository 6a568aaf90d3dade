package aip

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/agora-relay/agora"
	wire "github.com/agora-relay/agora/wire/aip"
)

// GatewayConfig sets up a [Gateway]. The zero value works.
type GatewayConfig struct {
	ID      string // unique among gateways that are linked, without commas; a random one if empty
	Listen  string // HOST:PORT to serve at; 127.0.0.1 and a free port if empty. Anyone who reaches it may use the gateway
	Address string // HOST:PORT that others dial, where it is not the one that is listened at

	Token       string                                // for linked gateways, in the metadata `authorization`
	TokenSource func(context.Context) (string, error) // gives the token instead, as [Config].TokenSource
	TLS         *tls.Config                           // to connect to nodes and gateways with; nil: no TLS
	ServeTLS    *tls.Config                           // to serve with; nil: no TLS

	MaxMessage       int           // bytes of a message, both ways; 16 MiB
	DialTimeout      time.Duration // to connect to a node that registers, and to a gateway; 5s
	ProbeTimeout     time.Duration // for a node to show that it is there, when another one wants its id or its channel broke; 1s
	HeartbeatTimeout time.Duration // of silence, after which a node is deregistered; 30s
	Poll             time.Duration // between looks at a linked gateway that knows no subscriptions; 10s
	Backoff          Backoff       // between attempts to reach a linked gateway
	Grace            time.Duration // that Close gives to calls that are under way; 5s, none if negative

	Log *slog.Logger // discards if nil
}

func (c GatewayConfig) withDefaults() GatewayConfig {
	c.ID = cmp.Or(c.ID, rand.Text())
	c.Listen = cmp.Or(c.Listen, defaultListen)
	c.MaxMessage = cmp.Or(c.MaxMessage, defaultMessage)
	c.DialTimeout = cmp.Or(c.DialTimeout, answerTime)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, time.Second)
	c.HeartbeatTimeout = cmp.Or(c.HeartbeatTimeout, 30*time.Second)
	c.Poll = cmp.Or(c.Poll, 10*time.Second)
	c.Backoff = c.Backoff.withDefaults()
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.TokenSource = tokenSource(c.Token, c.TokenSource)
	return c
}

// Gateway is a gateway that runs by itself: it knows what is registered with it, in memory, and what the gateways know
// that it is connected to. An edge of Agora is one that is many, authenticates and outlives its machines; this one
// suits tests, and a few programs on one machine. Its methods may be called at the same time.
type Gateway struct {
	cfg       GatewayConfig
	pool      *pool
	auth      *gateways // which calls linked gateways with a token
	directory *directory

	life   context.Context // ends when Close begins
	finish context.CancelCauseFunc
	once   sync.Once      // for Close
	work   sync.WaitGroup // the server, and what reads the calls that it carries

	mu      sync.Mutex // guards the fields below
	closing bool
	server  *grpc.Server
	address string
	links   map[string]*link // by the address of the other gateway
}

// NewGateway returns a gateway, which serves nowhere yet. Its errors are those of the configuration. The caller owes it
// a call of Close.
func NewGateway(cfg GatewayConfig) (*Gateway, error) {
	if strings.Contains(cfg.ID, ",") {
		return nil, agora.Errorf(agora.InvalidRequest, "the id of a gateway has no comma")
	}
	if cfg.Address != "" {
		if err := checkAddress(cfg.Address); err != nil {
			return nil, err
		}
	}
	cfg = cfg.withDefaults()
	p := newPool(dialer(cfg.TLS, cfg.MaxMessage))
	g := &Gateway{
		cfg: cfg, pool: p, auth: newGateways(p, cfg.DialTimeout, cfg.TokenSource), directory: newDirectory(cfg.ID), links: map[string]*link{},
	}
	g.life, g.finish = context.WithCancelCause(context.Background())
	return g, nil
}

// ID returns the id of the gateway.
func (g *Gateway) ID() string { return g.cfg.ID }

// Address returns the address under which others reach the gateway; empty before Start.
func (g *Gateway) Address() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.address
}

// Start has the gateway serve at GatewayConfig.Listen. One that has been started is not started again.
func (g *Gateway) Start() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return ErrClosed
	}
	if g.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", g.cfg.Listen)
	if err != nil {
		return err
	}
	if g.address, err = advertised(g.cfg.Address, l.Addr()); err != nil {
		l.Close()
		return err
	}
	opts := append(serverOptions(g.cfg.MaxMessage), grpc.ForceServerCodecV2(wire.Codec{}))
	if g.cfg.ServeTLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(g.cfg.ServeTLS)))
	}
	server := grpc.NewServer(opts...)
	for _, d := range services {
		server.RegisterService(&d, g)
	}
	server.RegisterService(wire.IdentityService(func() wire.Identity { return wire.Identity{} }), g) // it is no node
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	g.server = server
	g.work.Go(func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			g.cfg.Log.Error("the gateway serves no longer", "gateway", g.cfg.ID, "err", err)
		}
	})
	return nil
}

// Close ends links and subscriptions, gives calls that are under way GatewayConfig.Grace to end, and returns when
// everything has. Nodes are not told: they find another gateway, or register again. It may be called more than once.
func (g *Gateway) Close() error {
	g.once.Do(func() {
		g.mu.Lock()
		g.closing = true
		server := g.server
		links := g.links
		g.links = nil
		g.mu.Unlock()
		g.finish(ErrClosed)
		for _, l := range links {
			l.stop()
		}
		if server != nil {
			stopServer(server, g.cfg.Grace)
		}
		g.directory.clear()
		g.pool.close()
		g.work.Wait()
	})
	return nil
}

// Nodes returns all nodes that the gateway lists, those of linked gateways included, by their ids.
func (g *Gateway) Nodes() map[string]*Peer { return byID(g.directory.list(nil)) }

// Agents returns the agents among Nodes.
func (g *Gateway) Agents() map[string]*AgentInfo {
	all := map[string]*AgentInfo{}
	for id, p := range g.Nodes() {
		if a := p.GetAgentInfo(); a != nil {
			all[id] = a
		}
	}
	return all
}

// Toolboxes returns the toolboxes among Nodes.
func (g *Gateway) Toolboxes() map[string]*ToolBoxInfo {
	all := map[string]*ToolBoxInfo{}
	for id, p := range g.Nodes() {
		if t := p.GetToolboxInfo(); t != nil {
			all[id] = t
		}
	}
	return all
}
