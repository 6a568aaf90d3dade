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
)

const (
	dialTime  = 2 * time.Second // for one server to take the connection
	writeTime = 5 * time.Second // for it to take what is written, before the connection is given up
	dialPause = 200 * time.Millisecond
)

// connect opens the first connection: it tries until a server takes it, the servers
// say that they never will, or ctx is over.
func (b *Broker) connect(ctx context.Context) error {
	access, err := b.cfg.Access.options()
	if err != nil {
		return err
	}
	d := &dialer{starting: ctx, running: b.ctx}
	opts := b.options(d, access)
	var last error
	for {
		b.nc, err = nats.Connect(b.cfg.URL, opts...)
		if err == nil {
			d.started.Store(true)
			return nil
		}
		b.nc = nil
		if err := b.turnedAway(err); err != nil {
			return err
		}
		if ctx.Err() == nil || last == nil { // else it was this call that gave up
			last = err
		}
		if pauseFor(ctx, dialPause) != nil {
			return fmt.Errorf("no NATS server answers at %s: start it, or give its address as nats.url: %w", hostsOf(b.cfg.URL), last)
		}
	}
}

// turnedAway returns what to do about an error that no waiting mends; nil for any other.
func (b *Broker) turnedAway(err error) error {
	at := hostsOf(b.cfg.URL)
	switch {
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrNkeysNotSupported):
		if b.cfg.Access.named() || strings.Contains(b.cfg.URL, "@") {
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

// fragile is a connection that ends with the first write that fails, as one does that takes nothing for writeTime. The client would go on
// with it, less what it could not write.
type fragile struct{ net.Conn }

// Write writes to the connection, or ends it.
func (f fragile) Write(p []byte) (int, error) {
	n, err := f.Conn.Write(p)
	if err != nil {
		f.Close() // whoever reads from it sees that
	}
	return n, err
}

// checkMaxPayload fails when a server can't take a record as large as the largest frame.
func (b *Broker) checkMaxPayload() error {
	if b.cfg.Record <= b.MaxRecord() {
		return nil
	}
	return &setupError{what: fmt.Sprintf("NATS at %s takes messages of %d bytes and limits.frame needs %d (%d and room for headers): set max_payload of the servers to that or more (8MB serves every frame), or lower limits.frame",
		hostsOf(b.cfg.URL), b.nc.MaxPayload(), b.cfg.Record+headroom, b.cfg.Record)}
}
