package main

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// port is a listener and the HTTP server behind it.
type port struct {
	listener net.Listener
	server   *http.Server
	handler  atomic.Pointer[http.Handler]
	begin    sync.Once
	fail     func(error)
	serving  sync.WaitGroup
}

func openPort(addr string, log *slog.Logger, fail func(error)) (*port, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &port{listener: l, fail: fail}
	p.server = &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return p, nil
}

// addr is where the port can be reached from this machine.
func (p *port) addr() string {
	at, ok := p.listener.Addr().(*net.TCPAddr)
	if ok && at.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
	}
	return p.listener.Addr().String()
}

// ServeHTTP has the present handler answer.
func (p *port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*p.handler.Load()).ServeHTTP(w, r)
}

// serve has h answer requests from now on.
func (p *port) serve(h http.Handler) {
	p.handler.Store(&h)
	p.begin.Do(func() {
		p.serving.Go(func() {
			if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
				p.fail(err)
			}
		})
	})
}

// close ends the server. Requests under way are short ones: they are cut off.
func (p *port) close() {
	p.server.Close()
	p.listener.Close()
	p.serving.Wait()
}
