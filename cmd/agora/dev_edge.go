package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/presence"
)

// edgeServer is one edge: its connections to log and presence, its node, its
// doors and their ports.
type edgeServer struct {
	name          string
	log           *slog.Logger
	public, admin *port

	broker   *broker.Broker
	presence *presence.Store
	node     *edge.Node
	door     *ws.Door
}

// listen takes the ports of edge k; nobody is served yet.
func listen(o *devOptions, k int, log *slog.Logger, fail func(error)) (*edgeServer, error) {
	name := fmt.Sprintf("edge-%d", k)
	e := &edgeServer{name: name, log: log.With("edge", name)}
	var err error
	if e.public, err = openPort(o.addr, k, e.log, fail); err != nil {
		return nil, err
	}
	if e.admin, err = openPort(o.adminAddr, k, e.log, fail); err != nil {
		e.public.close()
		return nil, err
	}
	return e, nil
}

// start connects the edge and serves agents.
func (e *edgeServer) start(ctx context.Context, o *devOptions, auth edge.Authenticator, c *cluster) error {
	bc := o.broker(e.name, e.log)
	bc.Options = append(bc.Options, c.nats.Option(0))
	var err error
	if e.broker, err = broker.Connect(ctx, bc); err != nil {
		return fmt.Errorf("%s: log: %w", e.name, err)
	}
	pc := o.settings.presence(e.log)
	if pc.Client, err = presence.Dial("redis://" + c.presence.Addr()); err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	e.presence = presence.New(pc)
	nc := o.node(e.name, e.log)
	nc.Broker, nc.Presence, nc.Auth = e.broker, e.presence, auth
	if e.node, err = edge.Start(ctx, nc); err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	dc := o.door(e.log)
	dc.Loopback = true
	e.door = ws.New(e.node, dc)
	mux := http.NewServeMux()
	mux.Handle("/ws", e.door)
	e.public.serve(mux)
	e.admin.serve(adminHandler(e.node, e.door, e.broker))
	return e.node.Ready()
}

// drain hands the edge's agents over, and returns when none is left or ctx is over.
func (e *edgeServer) drain(ctx context.Context) {
	e.node.Drain(ctx)
}

// close ends whatever of the edge has been started.
func (e *edgeServer) close() {
	if e.door != nil {
		e.door.Close()
	}
	e.public.close()
	if e.node != nil {
		e.node.Close()
	}
	if e.door != nil {
		e.door.Wait()
	}
	e.admin.close()
	if e.broker != nil {
		e.broker.Close()
	}
	if e.presence != nil {
		warn(e.log, "presence was not closed", e.presence.Close())
	}
}

// port is a listener and the HTTP server behind it.
type port struct {
	listener net.Listener
	server   *http.Server
	fail     func(error)
	serving  sync.WaitGroup
}

func openPort(addr string, k int, log *slog.Logger, fail func(error)) (*port, error) {
	addr, err := plus(addr, k)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return &port{listener: l, server: s, fail: fail}, nil
}

// addr is where the port can be reached from this machine.
func (p *port) addr() string {
	at, ok := p.listener.Addr().(*net.TCPAddr)
	if ok && at.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
	}
	return p.listener.Addr().String()
}

func (p *port) serve(h http.Handler) {
	p.server.Handler = h
	p.serving.Go(func() {
		if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			p.fail(err)
		}
	})
}

// close ends the server. Requests under way are short ones: they are cut off.
func (p *port) close() {
	p.server.Close()
	p.listener.Close()
	p.serving.Wait()
}
