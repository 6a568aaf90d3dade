package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/cmd/agora/certs"
	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/origin"
	"github.com/agora-relay/agora/internal/turns"
)

// port is a listener and the HTTP server behind it.
type port struct {
	listener *admission.PendingConns
	server   *http.Server
	handler  atomic.Pointer[http.Handler]
	begin    sync.Once
	fail     func(error)
	certs    *certs.Files // nil without TLS
	stop     context.CancelFunc
	serving  sync.WaitGroup
	faults   atomic.Int64 // of clients in speaking HTTP/2
	pages    origin.Policy
}

// portConfig is how a port is served.
type portConfig struct {
	tls        config.TLS
	needPeer   bool // with CAs of clients, nobody without a certificate is answered
	readHeader time.Duration
	maxHeader  int
	http2      bool                    // over TLS to who asks for it, without TLS to who begins with it
	write      time.Duration           // for a piece of an answer; writeTime if 0
	proxies    *edge.Proxies           // whose PROXY headers are taken; nil for none at all
	pages      origin.Policy           // which web pages are answered
	shared     admission.SharedAddress // addresses that many clients share, as those of proxies; none if nil
	turns      *turns.Turns            // in which newcomers are let in, as thousands may come at once; nil where they never do
}

func openPort(addr string, cfg portConfig, log *slog.Logger, fail func(error)) (*port, error) {
	protos := []string{"http/1.1"}
	if cfg.http2 {
		protos = []string{"h2", "http/1.1"}
	}
	certs, err := cfg.tls.Open(protos)
	if err != nil {
		return nil, err
	}
	l, err := listenAt(addr, cfg.proxies)
	if err != nil {
		return nil, err
	}
	pending := admission.NewPendingConns(l, admission.PendingConnsConfig{Turns: cfg.turns, Shared: cfg.shared})
	cfg.write = cmp.Or(cfg.write, writeTime)
	p := &port{listener: pending, fail: fail, certs: certs, pages: cfg.pages}
	p.server = &http.Server{
		Handler:           web.Deadlines(http.HandlerFunc(p.answer), cfg.write),
		ReadHeaderTimeout: cfg.readHeader,
		ReadTimeout:       cfg.readHeader + readBody,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    cfg.maxHeader,
		ConnState:         pending.ConnState,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Protocols:         new(http.Protocols),
		ConnContext:       web.WithConn,
	}
	p.server.Protocols.SetHTTP1(true)
	if cfg.http2 {
		p.speakHTTP2(cfg.write)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	if certs != nil {
		p.server.TLSConfig = certs.Config(cfg.needPeer)
		p.serving.Go(func() { certs.Watch(ctx, log) })
	}
	return p, nil
}

// listenAt takes an address, where connections of proxies may come if there are such.
func listenAt(addr string, proxies *edge.Proxies) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err == nil && proxies != nil {
		l = proxyListener(l, proxies)
	}
	return l, err
}

// streams is how many requests of one connection are answered at a time. More of them wait, up to four times as many;
// who opens and gives up streams faster than that is cut off.
const streams = 128

// speakHTTP2 has the server speak HTTP/2 as well: by ALPN over TLS, without it to clients that begin with its preface.
func (p *port) speakHTTP2(write time.Duration) {
	p.server.Protocols.SetHTTP2(true)
	p.server.Protocols.SetUnencryptedHTTP2(true)
	p.server.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams:          streams,
		MaxReadFrameSize:              16 << 10,
		MaxReceiveBufferPerConnection: 512 << 10, // kept for a connection whose requests nobody reads
		MaxReceiveBufferPerStream:     128 << 10,
		SendPingTimeout:               30 * time.Second, // an answer that is quiet does not report whether the peer is there
		PingTimeout:                   15 * time.Second,
		WriteByteTimeout:              write,
		CountError:                    func(string) { p.faults.Add(1) },
	}
}

// admitted learns of the context of each request that was let in: its connection counts elsewhere from then on.
func (p *port) admitted(ctx context.Context) {
	if c := admission.PendingConnOf(web.ConnOf(ctx)); c != nil {
		c.Admitted()
	}
}

// drain has clients go elsewhere with their next request: no connection is kept for it.
func (p *port) drain() { p.server.SetKeepAlivesEnabled(false) }

// readBody is how long the body of a request may take: none is long.
const readBody = 20 * time.Second

// addr is where the port can be reached from this machine.
func (p *port) addr() string { return reachedAt(p.listener.Addr()) }

// reachedAt returns where a listener is reached: one of all addresses at the machine's own by which others reach it,
// where it has one.
func reachedAt(addr net.Addr) string {
	at, ok := addr.(*net.TCPAddr)
	if ok && at.IP.IsUnspecified() {
		return net.JoinHostPort(ownAddress(), strconv.Itoa(at.Port))
	}
	return addr.String()
}

// ownAddress returns the first address of this machine that others may reach, of IPv4 where it has both; 127.0.0.1
// where it has none.
func ownAddress() string {
	own := "127.0.0.1"
	all, err := net.InterfaceAddrs()
	if err != nil {
		return own
	}
	for _, a := range all {
		n, is := a.(*net.IPNet)
		switch {
		case !is || !n.IP.IsGlobalUnicast():
		case n.IP.To4() != nil:
			return n.IP.String()
		case own == "127.0.0.1":
			own = n.IP.String()
		}
	}
	return own
}

// url is where the port can be reached, by a scheme or its secure sister.
func (p *port) url(scheme string) string { return p.scheme(scheme) + "://" + p.addr() }

// localURL is where the port is reached from this machine: what operators ask is answered there without a token, and
// nowhere else.
func (p *port) localURL(scheme string) string {
	if at, ok := p.listener.Addr().(*net.TCPAddr); ok && at.IP.IsUnspecified() {
		return p.scheme(scheme) + "://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
	}
	return p.url(scheme)
}

func (p *port) scheme(name string) string {
	if p.certs != nil {
		return name + "s"
	}
	return name
}

// answer has the present handler answer, but for what could mean one thing
// here and another to whatever stands before this server.
func (p *port) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "*" && r.URL.Path != clean(r.URL.Path) || len(r.Header["Authorization"]) > 1 || twoHosts(r) {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // else what is left of the request would be waited for
		}
		writeRefusal(w, http.StatusBadRequest, ambiguous)
		return
	}
	h := *p.handler.Load()
	if err := p.pages.Check(r); err != nil {
		refusePage(w, r, h, err)
		return
	}
	h.ServeHTTP(w, r)
}

// pageRefuser is a handler with errors, counters and a log of its own.
type pageRefuser interface {
	RefusePage(w http.ResponseWriter, r *http.Request, err error)
}

// refusePage answers a request that a web page was not allowed to send, in the form of whatever would have answered it.
func refusePage(w http.ResponseWriter, r *http.Request, h http.Handler, err error) {
	if mux, is := h.(*http.ServeMux); is {
		h, _ = mux.Handler(r)
	}
	if own, is := h.(pageRefuser); is {
		own.RefusePage(w, r, err)
		return
	}
	if r.ProtoMajor == 1 && r.Body != http.NoBody {
		w.Header().Set("Connection", "close")
	}
	e := agora.AsError(err)
	text, _ := json.Marshal(web.Fault{Error: web.FaultText{Code: e.Code, Message: e.Message}}) // two strings
	writeRefusal(w, e.Code.Status().HTTP, string(text)+"\n")
}

func writeRefusal(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	io.WriteString(w, body) // a peer that has gone reads nothing
}

// ambiguous is the answer to what could mean two things, in the form of all errors.
const ambiguous = `{"error":{"code":"INVALID_REQUEST","message":"the request is ambiguous: two hosts or credentials, or a path with dots or doubled slashes"}}` + "\n"

// twoHosts reports whether a request of HTTP/2 names one host as its authority, and another in a header.
func twoHosts(r *http.Request) bool {
	hosts := r.Header["Host"]
	return len(hosts) > 1 || len(hosts) == 1 && hosts[0] != r.Host
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

// close ends the server. What doors have not ended is cut off.
func (p *port) close() {
	p.stop()
	p.server.Close()
	p.listener.Close()
	p.serving.Wait()
}

// publicPort and adminPort return how the two ports of an edge are served.
func publicPort(s *config.Server) portConfig {
	return portConfig{tls: s.TLS, readHeader: s.ReadHeader, maxHeader: int(s.MaxHeader), http2: true, pages: s.Pages(), turns: s.Turns}
}

func adminPort(s *config.Server) portConfig {
	c := publicPort(s)
	c.tls, c.needPeer, c.http2, c.pages, c.turns = s.Admin, true, false, s.AdminPages(), nil
	return c
}

// writeTime bounds how long each piece of an answer may take to be read. The whole may take as long as it likes.
const writeTime = 30 * time.Second
