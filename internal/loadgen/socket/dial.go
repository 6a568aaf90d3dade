package socket

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Target says where to connect. URL is required.
type Target struct {
	URL    *url.URL    // ws or wss, with path and query
	Token  string      // that the client presents; none if empty
	TLS    *tls.Config // for wss; nil: the system's
	Source net.IP      // local address; any if nil
	Buffer int         // bytes read at once; [Buffer] if zero
}

// RefusedError is what a server says instead of becoming a WebSocket.
type RefusedError struct {
	Status int    // of HTTP
	Line   string // the same with its words
	Said   string // the beginning of the body
}

func (e *RefusedError) Error() string { return "refused with " + e.Line }

// ErrForeign is that a server agrees without having understood.
var ErrForeign = errors.New("it speaks no WebSocket")

// Dial connects and returns once the server speaks WebSocket; a *RefusedError where it won't. ctx bounds only that.
// The caller owes a call of Close or Cut.
func Dial(ctx context.Context, t Target) (*Conn, error) {
	nc, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	c := New(nc, t.Buffer)
	defer c.Until(ctx)()
	if err := c.shake(t); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func (t Target) open(ctx context.Context) (net.Conn, error) {
	host, port := t.URL.Hostname(), t.URL.Port()
	if port == "" {
		port = map[string]string{"ws": "80", "wss": "443"}[t.URL.Scheme]
	}
	var d net.Dialer
	if t.Source != nil {
		d.LocalAddr = &net.TCPAddr{IP: t.Source}
	}
	nc, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil || t.URL.Scheme == "ws" {
		return nc, err
	}
	secure := tls.Client(nc, t.secure(host))
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return secure, nil
}

// secure returns the settings of a connection to a host.
func (t Target) secure(host string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.TLS != nil {
		c = t.TLS.Clone()
	}
	c.ServerName = host
	return c
}

// shake asks for a WebSocket.
func (c *Conn) shake(t Target) error {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	key := base64.StdEncoding.EncodeToString(nonce)
	var ask strings.Builder
	fmt.Fprintf(&ask, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", t.URL.RequestURI(), t.URL.Host, key)
	if t.Token != "" {
		fmt.Fprintf(&ask, "Authorization: Bearer %s\r\n", t.Token)
	}
	if err := c.Send([]byte(ask.String() + "\r\n")); err != nil {
		return err
	}
	r, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return err
	}
	if r.StatusCode != http.StatusSwitchingProtocols {
		b, _ := io.ReadAll(io.LimitReader(r.Body, 1024)) // what can be had of it
		return &RefusedError{Status: r.StatusCode, Line: r.Status, Said: strings.TrimSpace(string(b))}
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if r.Header.Get("Sec-Websocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]) {
		return ErrForeign
	}
	return nil
}
