package aip

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	wire "github.com/agora-relay/agora/wire/aip"
)

// node is what agents and toolboxes have in common: a server at an address, a registration with a gateway, and what
// they know of others. Its methods may be called at the same time.
type node struct {
	cfg      Config
	pool     *pool
	gateways *gateways
	attach   func(*grpc.Server)         // has the server serve what the node is
	info     func(address string) *Peer // what it registers with

	life   context.Context // ends with Close
	finish context.CancelCauseFunc
	once   sync.Once      // for Close
	work   sync.WaitGroup // the server

	keeper      keeper
	registering sync.Mutex // held while a gateway learns of the node; guards the fields below
	registered  bool       // as far as is known
	unsure      bool       // it may be registered though it is not known to be
	told        Status     // that Config.OnStatus was told last

	mu      sync.Mutex // guards the fields below
	closing bool
	server  *grpc.Server
	address string
	peers   map[string]*Peer // that the node has been told of, by id

	registers bool   // it has registered, or tried to
	secret    string // that its registrations carry; not guarded, as it stays
}

func newNode(cfg Config) (*node, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p := newPool(dialer(cfg.TLS, cfg.MaxMessage))
	n := &node{cfg: cfg, pool: p, gateways: newGateways(p, cfg.RegisterTimeout, cfg.TokenSource), peers: map[string]*Peer{}, secret: wire.NewSecret()}
	all, err := addresses(cfg.Gateways)
	n.gateways.use(all)
	n.life, n.finish = context.WithCancelCause(context.Background())
	return n, err
}

// ID returns the id of the node.
func (n *node) ID() string { return n.cfg.ID }

// Address returns the address under which others reach the node; empty before Start.
func (n *node) Address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.address
}

// Start has the node serve at Config.Listen: others reach it from now on. It registers with nobody. A node that has
// been started is not started again.
func (n *node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return ErrClosed
	}
	if n.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", n.cfg.Listen)
	if err != nil {
		return err
	}
	if n.address, err = advertised(n.cfg.Address, l.Addr()); err != nil {
		l.Close()
		return err
	}
	n.server = grpc.NewServer(n.serverOptions()...)
	n.attach(n.server)
	n.server.RegisterService(wire.IdentityService(n.identity), n)
	server := n.server
	n.work.Go(func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			n.cfg.Log.Error("the node serves no longer", "agent", n.cfg.ID, "err", err)
		}
	})
	return nil
}

func (n *node) serverOptions() []grpc.ServerOption {
	opts := append(serverOptions(n.cfg.MaxMessage), grpc.UnaryInterceptor(n.unary), grpc.StreamInterceptor(n.stream))
	if n.cfg.ServeTLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(n.cfg.ServeTLS)))
	}
	return opts
}

// maxMetadata bounds the metadata of a call, in bytes.
const maxMetadata = 64 << 10

// serverOptions are those of every server here: gateways keep their channels by pings, and stopping waits for what is
// under way.
func serverOptions(maxMessage int) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.MaxHeaderListSize(maxMetadata), grpc.WaitForHandlers(true),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
}

// Serve starts the node, registers it and keeps it registered until ctx ends: then it deregisters and closes it, and
// returns nil. A gateway that is not there yet is waited for; without any, the node is reached by its address alone.
// What a gateway refuses permanently, such as an id that another node has, is returned.
func (n *node) Serve(ctx context.Context) error {
	defer n.Close()
	if err := n.Start(); err != nil {
		return err
	}
	for attempt := 0; len(n.gateways.inOrder()) > 0; attempt++ {
		err := n.Register(ctx)
		if err == nil {
			break
		}
		if errors.Is(err, ErrClosed) || final(err) && ctx.Err() == nil {
			return err
		}
		if !pause.For(ctx, n.cfg.Backoff.after(attempt)) {
			return nil
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case <-n.life.Done():
		return ErrClosed
	}
}

// Close deregisters the node, gives what is under way Config.Grace to end, ends the rest with [ErrClosed], and returns
// when every handler has returned; so no handler may call it. It may be called more than once.
func (n *node) Close() error {
	n.once.Do(func() {
		n.keeper.stop()
		n.leave()
		n.mu.Lock()
		server := n.server
		n.closing = true
		n.mu.Unlock()
		if server != nil {
			stopServer(server, n.cfg.Grace)
		}
		n.finish(ErrClosed)
		n.keeper.stop() // of who has registered meanwhile
		n.pool.close()
		n.work.Wait()
	})
	return nil
}

// stopServer ends a server, once what is under way has ended, or grace has passed.
func stopServer(s *grpc.Server, grace time.Duration) {
	if grace > 0 {
		late := time.AfterFunc(grace, s.Stop)
		defer late.Stop()
		s.GracefulStop()
	}
	s.Stop()
}

// within returns ctx, which ends with the node as well.
func (n *node) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(n.life, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// why returns the error of a call; [ErrClosed] where it ended with the node.
func (n *node) why(err error) error {
	if err != nil && n.life.Err() != nil {
		return ErrClosed
	}
	return err
}

var errNotStarted error = agora.Errorf(agora.InvalidRequest, "the node serves nowhere yet: Start comes before Register")
