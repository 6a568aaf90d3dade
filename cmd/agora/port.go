package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/turns"
)

// port is a listener and the HTTP server behind it.
type port struct {
	listener net.Listener
	server   *http.Server
	handler  atomic.Pointer[http.Handler]
	begin    sync.Once
	fail     func(error)
	certs    *certificates // nil without TLS
	stop     context.CancelFunc
	serving  sync.WaitGroup
}

// portConfig is how a port is served.
type portConfig struct {
	tls        tlsSettings
	needPeer   bool // with CAs of clients, nobody without a certificate is answered
	readHeader time.Duration
	maxHeader  int
	write      time.Duration // for an answer; 0 for as long as it takes
	proxies    *edge.Proxies // whose PROXY headers are taken; nil for none at all
	turns      *turns.Turns  // in which newcomers are let in, as thousands may come at once; nil where they never do
}

func openPort(addr string, cfg portConfig, log *slog.Logger, fail func(error)) (*port, error) {
	certs, err := cfg.tls.open()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if cfg.proxies != nil {
		l = proxyListener(l, cfg.proxies)
	}
	h := newHall(l)
	h.turns = cfg.turns
	p := &port{listener: h, fail: fail, certs: certs}
	p.server = &http.Server{
		Handler:           http.HandlerFunc(p.answer),
		ReadHeaderTimeout: cfg.readHeader,
		ReadTimeout:       cfg.readHeader + readBody,
		WriteTimeout:      cfg.write,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    cfg.maxHeader,
		ConnState:         h.see,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Protocols:         new(http.Protocols),
	}
	p.server.Protocols.SetHTTP1(true)
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	if certs != nil {
		p.server.TLSConfig = certs.config(cfg.needPeer)
		p.serving.Go(func() { certs.watch(ctx, log) })
	}
	return p, nil
}

// readBody is how long the body of a request may take: none is long.
const readBody = 20 * time.Second

// addr is where the port can be reached from this machine.
func (p *port) addr() string {
	at, ok := p.listener.Addr().(*net.TCPAddr)
	if ok && at.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
	}
	return p.listener.Addr().String()
}

// url is where the port can be reached, by a scheme or its secure sister.
func (p *port) url(scheme string) string {
	if p.certs != nil {
		scheme += "s"
	}
	return scheme + "://" + p.addr()
}

// answer has the present handler answer, but for what could mean one thing
// here and another to whatever stands before this server.
func (p *port) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "*" && r.URL.Path != clean(r.URL.Path) || len(r.Header["Authorization"]) > 1 {
		w.Header().Set("Connection", "close") // else what is left of the request would be waited for
		http.Error(w, "INVALID_REQUEST: the request is ambiguous", http.StatusBadRequest)
		return
	}
	(*p.handler.Load()).ServeHTTP(w, r)
}

// clean returns the plain spelling of a path.
func clean(p string) string {
	c := path.Clean("/" + p)
	if c != "/" && strings.HasSuffix(p, "/") {
		c += "/"
	}
	return c
}

// serve has h answer requests from now on.
func (p *port) serve(h http.Handler) {
	p.handler.Store(&h)
	p.begin.Do(func() {
		p.serving.Go(func() {
			if err := p.listen(); !errors.Is(err, http.ErrServerClosed) {
				p.fail(err)
			}
		})
	})
}

func (p *port) listen() error {
	if p.certs != nil {
		return p.server.ServeTLS(p.listener, "", "")
	}
	return p.server.Serve(p.listener)
}

// close ends the server. Requests under way are short ones: they are cut off.
func (p *port) close() {
	p.stop()
	p.server.Close()
	p.listener.Close()
	p.serving.Wait()
}
