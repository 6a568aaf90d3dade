package serve

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/agora-relay/agora/cmd/agora/certs"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/aip"
)

// grpcPort is a listener at which gRPC is spoken; what serves it is a door's. A connection is pending until the first
// call over it is let in. From then on it counts as idle while no call is under way: strangers don't push it out, and
// beyond as many as the edge may have connections, the one that has been idle longest is closed.
type grpcPort struct {
	*admission.PendingConns
	idle    idleConns
	certs   *certs.Files    // nil without TLS
	ctx     context.Context // ends with close
	stop    context.CancelFunc
	serving sync.WaitGroup
}

func openGRPC(addr string, cfg portConfig, log *slog.Logger) (*grpcPort, error) {
	certs, err := cfg.tls.Open([]string{"h2"})
	if err != nil {
		return nil, err
	}
	l, err := listenAt(addr, cfg.proxies)
	if err != nil {
		return nil, fmt.Errorf("grpc-addr: %w", err)
	}
	p := &grpcPort{
		PendingConns: admission.NewPendingConns(l, admission.PendingConnsConfig{Turns: cfg.turns, Shared: cfg.shared}),
		idle:         idleConns{most: defaultIdle, at: map[*callConn]*list.Element{}}, certs: certs,
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	if certs != nil {
		p.follow(certs, log)
	}
	return p, nil
}

// follow has certificates be read again when they change, until the port is closed.
func (p *grpcPort) follow(c *certs.Files, log *slog.Logger) {
	p.serving.Go(func() { c.Watch(p.ctx, log) })
}

// keep bounds how many connections may be idle.
func (p *grpcPort) keep(connections int) { p.idle.keep(connections) }

// url is where the port can be reached from this machine.
func (p *grpcPort) url() string {
	if p.certs != nil {
		return "grpcs://" + reachedAt(p.Addr())
	}
	return "grpc://" + reachedAt(p.Addr())
}

// serve has a server serve the port from now on, until that ends.
func (p *grpcPort) serve(server func(net.Listener) error, fail func(error)) {
	p.serving.Go(func() {
		if err := server(p); err != nil && !errors.Is(err, net.ErrClosed) {
			fail(err)
		}
	})
}

// close ends the listener; its server has ended, or has never begun. Idempotent.
func (p *grpcPort) close() {
	p.stop()
	p.Close()
	p.serving.Wait()
}

// Accept returns the next connection, once there is room for it.
func (p *grpcPort) Accept() (net.Conn, error) {
	c, err := p.PendingConns.Accept()
	if err != nil {
		return nil, err
	}
	return newCallConn(p, c.(*admission.PendingConn)), nil
}

// admitted learns of the context of each call that was let in, and returns what is to be called when the call ends.
func (p *grpcPort) admitted(ctx context.Context) (ended func()) {
	at, is := aip.CallerAddr(ctx).(*callAddr)
	if !is || !at.conn.begin() {
		return func() {}
	}
	return at.conn.end
}
