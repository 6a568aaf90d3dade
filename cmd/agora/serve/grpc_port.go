package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/agora-relay/agora/cmd/agora/certs"
	"github.com/agora-relay/agora/edge/aip"
)

// grpcPort is a listener at which gRPC is spoken; what serves it is a door's. A connection waits in the hall until the first call over it is
// let in. From then on it counts as idle while no call is under way: strangers don't push it out, and beyond as many as the edge may have
// connections, the one that has been idle longest is closed.
type grpcPort struct {
	*hall
	idle    *hall
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
	p := &grpcPort{hall: newHall(l), idle: newHall(nil), certs: certs}
	p.turns = cfg.turns
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
func (p *grpcPort) keep(connections int) {
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	p.idle.size = max(1, connections)
}

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
	c, err := p.hall.Accept()
	if err != nil {
		return nil, err
	}
	return newCallConn(p, c), nil
}

// admitted is told of the context of each call that was let in, and returns what is to be called when the call ends.
func (p *grpcPort) admitted(ctx context.Context) (ended func()) {
	at, is := aip.CallerAddr(ctx).(*callAddr)
	if !is || !at.conn.begin() {
		return func() {}
	}
	return at.conn.end
}

// callConn is a connection of a grpcPort.
type callConn struct {
	*aip.QuietConn
	port *grpcPort
	addr callAddr

	mu     sync.Mutex // guards the fields below
	calls  int        // that were let in and are under way
	closed bool
}

func newCallConn(p *grpcPort, c net.Conn) *callConn {
	own := &callConn{QuietConn: aip.NewQuietConn(c), port: p}
	own.addr = callAddr{Addr: c.RemoteAddr(), conn: own}
	return own
}

// callAddr is where a callConn comes from: the one thing of a connection by which a call's context knows it.
type callAddr struct {
	net.Addr
	conn *callConn
}

// AddrPort returns the address; the zero one where it is none of TCP.
func (a *callAddr) AddrPort() netip.AddrPort {
	if at, is := a.Addr.(*net.TCPAddr); is {
		return at.AddrPort()
	}
	return netip.AddrPort{}
}

// RemoteAddr implements net.Conn.
func (c *callConn) RemoteAddr() net.Addr { return &c.addr }

// begin notes that a call was let in; false where the connection is closed.
func (c *callConn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls++; c.calls == 1 && !c.closed {
		c.port.leave(c.Conn)
		c.port.idle.leave(c.Conn)
	}
	return !c.closed
}

// end notes that a call has ended.
func (c *callConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.calls == 0 && !c.closed {
		c.port.idle.see(c.Conn, http.StateIdle)
	}
}

// Close implements net.Conn.
func (c *callConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.port.leave(c.Conn)
	c.port.idle.leave(c.Conn)
	c.mu.Unlock()
	return c.Conn.Close()
}
