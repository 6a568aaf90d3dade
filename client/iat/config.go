package iat

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// Config sets up a client. URLs are required, and Agent for the one who sends or receives; the zero value of everything
// else works.
type Config struct {
	URLs  []string // base addresses of edges, http:// or https:// (ws:// and wss:// are taken for them), tried in random order
	Agent string   // the id to be; empty: nobody, who may only look at tools and approvals
	Token string   // sent in the Authorization header, never in the URL or an envelope
	// TokenSource gives the token instead, for those that end. It is called for every request, by several goroutines,
	// and must return when its context ends. A request that was refused is made again with what it gives then, for as
	// long as Patience.
	TokenSource func(context.Context) (string, error)

	Name        string // for people; the id if empty
	Description string // for people, and for who looks for an agent
	Root        string // workspace_root that is declared, an absolute path; no [Workspace] leaves it. Empty: none is declared

	Patience    time.Duration // how long what an edge refuses for the moment, or what broke, is tried again before it fails; 30s
	Backoff     Backoff       // between attempts, once every edge had one
	KeepAlive   time.Duration // of the edges, iat.keep-alive: an edge that is silent for twice that is gone; 15s
	Handlers    int           // that run at a time; 64
	MaxBuffered int           // bytes received that wait for a handler, beyond which reading stops; 4 MiB

	OnStatus func(Status) // told when a downlink is made, and when it is lost or could not be made again, one at a time; must not block; nil: only logged

	TLS  *tls.Config  // for https; nil: the system's. Not used with HTTP
	HTTP *http.Client // makes the requests, used and not owned; it must have no Timeout. nil: one of its own
	Log  *slog.Logger // discards if nil
}

// Status is how a downlink stands.
type Status struct {
	Edge string // address of the edge that it is made to
	Err  error  // why there is none; nil while there is one
}

// Backoff is how long to wait between attempts: Min doubled each time up to Max, less up to a half by chance.
type Backoff struct {
	Min time.Duration // 100ms
	Max time.Duration // 10s
}

// after returns the wait before attempt n, from 0.
func (b Backoff) after(n int) time.Duration {
	d := min(b.Min<<min(n, 20), b.Max)
	return d - rand.N(d/2+1)
}

func (c Config) withDefaults() Config {
	c.Patience = cmp.Or(c.Patience, 30*time.Second)
	c.Backoff.Min = cmp.Or(c.Backoff.Min, 100*time.Millisecond)
	c.Backoff.Max = max(cmp.Or(c.Backoff.Max, 10*time.Second), c.Backoff.Min)
	c.KeepAlive = cmp.Or(c.KeepAlive, 15*time.Second)
	c.Handlers = cmp.Or(c.Handlers, 64)
	c.MaxBuffered = cmp.Or(c.MaxBuffered, 4<<20)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.OnStatus == nil {
		c.OnStatus = func(Status) {}
	}
	return c
}

// check returns what is wrong with the configuration.
func (c Config) check() error {
	if c.Agent != "" {
		if _, err := agora.ParseOwnID(c.Agent); err != nil {
			return err
		}
	}
	if c.Root != "" && !filepath.IsAbs(c.Root) {
		return agora.Errorf(agora.InvalidRequest, "root %q is no absolute path", c.Root)
	}
	return nil
}

// schemes are those of addresses, by what may be written for them.
var schemes = map[string]string{"http": "http", "https": "https", "ws": "http", "wss": "https"}

// addresses returns the base addresses of edges, in random order.
func (c Config) addresses() ([]string, error) {
	var all []string
	for _, raw := range c.URLs {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil || u.Host == "" || schemes[u.Scheme] == "" || u.RawQuery != "" {
			return nil, agora.Errorf(agora.InvalidRequest, "%q is no http:// or https:// address", raw)
		}
		u.Scheme = schemes[u.Scheme]
		all = append(all, strings.TrimSuffix(u.String(), "/"))
	}
	if len(all) == 0 {
		return nil, agora.Errorf(agora.InvalidRequest, "no address of an edge is given")
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

const (
	dialTime  = 10 * time.Second // to connect, and for a TLS handshake
	idleTime  = 30 * time.Second // that a connection is kept which nothing uses
	idleConns = 16               // of them, to each edge
)

// transport returns what makes the requests of a client that was given nothing for that.
func (c Config) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTime}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: c.TLS.Clone(), TLSHandshakeTimeout: dialTime,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: c.KeepAlive, PingTimeout: c.KeepAlive},
		MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTime, DisableCompression: true,
	}
}
