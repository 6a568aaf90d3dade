package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/pause"
)

const (
	dialTime  = 2 * time.Second // for one server to take the connection
	writeTime = 5 * time.Second // for it to take what is written, before the connection is given up
	dialPause = 200 * time.Millisecond
)

// conn is the connection to NATS, which is opened again and again for as long as the Broker lives.
type conn struct {
	nc *nats.Conn
	js jetstream.JetStream

	cfg     *Config
	running context.Context      // over when the Broker closes
	onBack  func()               // the connection is there again; must not block
	onDrop  func(subject string) // a live message of the subject was dropped on its way; must not block

	back   chan struct{}         // holds one token after the connection came back
	lives  atomic.Uint64         // attempts to connect again
	lostAt atomic.Int64          // ticks when the connection was lost; 0 while there is one
	closed chan struct{}         // closed when the connection is closed permanently
	link   atomic.Pointer[link]  // the connection as it is now
	denied atomic.Pointer[error] // what the servers last said that this edge's user may not do
}

func (c *conn) init(cfg *Config, running context.Context, onBack func(), onDrop func(subject string)) {
	c.cfg, c.running, c.onBack, c.onDrop = cfg, running, onBack, onDrop
	c.back, c.closed = make(chan struct{}, 1), make(chan struct{})
	c.link.Store(newLink())
}

// link is one life of the connection: what was asked in it is answered in it or never.
type link struct {
	ctx  context.Context
	lost context.CancelFunc
}

func newLink() *link {
	l := new(link)
	l.ctx, l.lost = context.WithCancel(context.Background())
	return l
}

// within returns a context for one question: it is over after d, and when the connection is lost.
func (c *conn) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(c.link.Load().ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// reconnected runs on the connection's own goroutine and must not block.
func (c *conn) reconnected() {
	c.lostAt.Store(0)
	c.onBack()
	signal(c.back)
}

// onError hears of what went wrong outside any call: mostly, that a channel of live messages was full.
func (c *conn) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if sub != nil && errors.Is(err, nats.ErrSlowConsumer) {
		c.onDrop(sub.Subject)
		return
	}
	if errors.Is(err, nats.ErrPermissionViolation) && !strings.Contains(err.Error(), "$SYS.") { // the servers' time may be kept from us
		c.denied.Store(&err)
	}
	if c.running.Err() == nil {
		c.cfg.Log.Warn("nats", "err", err)
	}
}

// Connected reports whether the log can be reached now.
func (c *conn) Connected() bool { return c.nc.IsConnected() }

// Lost reports whether the connection has been away for longer than an election takes.
func (c *conn) Lost() bool {
	at := c.lostAt.Load()
	return at != 0 && agora.Ticks()-at > int64(c.cfg.Election)
}

// Election returns how long the log may be away before what needs it is to be refused: longer than any election takes.
func (c *conn) Election() time.Duration { return c.cfg.Election }

// Life numbers the connection to the log. The number grows after a connection was lost and before
// anything can come over the next one, so what was read under one life and is
// looked at under the same was never read behind an absence.
func (c *conn) Life() uint64 { return c.lives.Load() }

// Reconnected returns a channel that holds one token after the connection came back. It is for one listener.
func (c *conn) Reconnected() <-chan struct{} { return c.back }

// connect opens the first connection: it tries until a server takes it, the servers
// say that they never will, or ctx is over.
func (c *conn) connect(ctx context.Context) error {
	access, err := c.cfg.Access.options()
	if err != nil {
		return err
	}
	d := &dialer{starting: ctx, running: c.running}
	opts := c.options(d, access)
	var last error
	var reminder pause.Reminder
	for {
		c.nc, err = nats.Connect(c.cfg.URL, opts...)
		if err == nil {
			d.started.Store(true)
			c.js, err = jetstream.New(c.nc)
			return err
		}
		c.nc = nil
		if err := c.turnedAway(err); err != nil {
			return err
		}
		if ctx.Err() == nil || last == nil { // else it was this call that gave up
			last = err
		}
		if reminder.Due() {
			c.cfg.Log.Warn("still waiting for NATS", "at", hostsOf(c.cfg.URL), "err", last)
		}
		if !pause.For(ctx, dialPause) {
			return fmt.Errorf("no NATS server answers at %s: start it, or give its address as nats.url: %w", hostsOf(c.cfg.URL), last)
		}
	}
}

func (c *conn) options(d *dialer, access []nats.Option) []nats.Option {
	opts := append(access,
		nats.Name(c.cfg.Name),
		nats.Timeout(dialTime),
		nats.SetCustomDialer(d),
		nats.FlusherTimeout(c.cfg.write), // of every write, under a lock that all who publish take
		nats.ReconnectWait(100*time.Millisecond),
		nats.ReconnectJitter(150*time.Millisecond, 150*time.Millisecond),
		nats.PingInterval(5*time.Second),
		nats.MaxPingsOutstanding(2),
		nats.SyncQueueLen(2*max(jslog.ReadBatch, jslog.LastBatch)), // made again for each reading of the log
	)
	opts = append(opts, c.cfg.Options...)
	// The defaults would give up one day, and would send stale publishes late.
	return append(opts,
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // credentials that are refused today may be put right tomorrow
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(*nats.Conn, error) {
			c.lostAt.CompareAndSwap(0, agora.Ticks())
			c.link.Swap(newLink()).lost()
		}),
		// The client calls it before each attempt; nil leaves the choice of a server to the client.
		nats.ReconnectToServer(func([]nats.Server, nats.ServerInfo) (*nats.Server, time.Duration) {
			c.lives.Add(1)
			return nil, 0
		}),
		nats.ReconnectHandler(func(*nats.Conn) { c.reconnected() }),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
		nats.ErrorHandler(c.onError),
	)
}

// turnedAway returns what to do about an error that no waiting mends; nil for any other.
func (c *conn) turnedAway(err error) error {
	at := hostsOf(c.cfg.URL)
	switch {
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrNkeysNotSupported):
		if c.cfg.Access.named() || strings.Contains(c.cfg.URL, "@") {
			return &setupError{what: fmt.Sprintf("NATS at %s refuses the credentials: correct nats.creds, nats.nkey, nats.token, or nats.user and nats.password", at), err: err}
		}
		return &setupError{what: fmt.Sprintf("NATS at %s lets nobody in without credentials: give nats.creds, nats.nkey, nats.token, or nats.user and nats.password", at), err: err}
	case errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return &setupError{what: fmt.Sprintf("NATS at %s says that the credentials have expired or were revoked: replace what nats.creds names", at), err: err}
	case errors.Is(err, nats.ErrSecureConnWanted):
		return &setupError{what: fmt.Sprintf("NATS at %s does not speak TLS: leave nats.tls.… and tls:// away, or give the server a certificate", at), err: err}
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &setupError{what: fmt.Sprintf("the certificate of NATS at %s can't be trusted: give the CA that signed it as nats.tls.ca, and an address that it is made for (%v)", at, e.Err), err: err}
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" {
		return &setupError{what: fmt.Sprintf("NATS at %s does not take this edge's certificate: give one that it trusts as nats.tls.cert and nats.tls.key (%v)", at, e.Err), err: err}
	}
	if e, ok := errors.AsType[*net.AddrError](err); ok {
		return &setupError{what: fmt.Sprintf("nats.url: %s is no address", e.Addr), err: err}
	}
	return nil
}

// named reports whether a says who the edge is.
func (a Access) named() bool { return a.Creds != "" || a.NKey != "" || a.Token != "" || a.User != "" }

// hostsOf returns the hosts and ports of addresses, without who is to log in there.
func hostsOf(urls string) string {
	all := strings.Split(urls, ",")
	for k, u := range all {
		_, rest, found := strings.Cut(strings.TrimSpace(u), "://")
		if !found {
			rest = strings.TrimSpace(u)
		}
		all[k] = rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return strings.Join(all, ", ")
}

// dialer gives up when nobody waits for the connection any more.
type dialer struct {
	starting, running context.Context
	started           atomic.Bool
}

// Dial opens a connection to a server.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	ctx := d.starting
	if d.started.Load() {
		ctx = d.running
	}
	n := net.Dialer{Timeout: dialTime}
	c, err := n.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return fragile{c}, nil
}

// fragile is a connection that ends with the first write that fails, as one does that takes nothing for writeTime. The
// client would go on with it, less what it could not write.
type fragile struct{ net.Conn }

// Write writes to the connection, or ends it.
func (f fragile) Write(p []byte) (int, error) {
	n, err := f.Conn.Write(p)
	if err != nil {
		f.Close() // the reader of the connection sees that
	}
	return n, err
}

// checkMaxPayload fails when a server can't take a record as large as the largest frame: most is what it can.
func (c *conn) checkMaxPayload(most int) error {
	if c.cfg.Record <= most {
		return nil
	}
	return &setupError{what: fmt.Sprintf("NATS at %s takes messages of %d bytes and limits.frame needs %d (%d and room for headers): set max_payload of the servers to that or more (8MB serves every frame), or lower limits.frame",
		hostsOf(c.cfg.URL), c.nc.MaxPayload(), c.cfg.Record+jslog.Headroom, c.cfg.Record)}
}
