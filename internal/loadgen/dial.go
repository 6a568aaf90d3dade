package loadgen

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// Target says where to connect, and as whom.
type Target struct {
	Edge  string // ws:// or wss:// address; /ws is added to one without a path
	Agent string
	Access
	Resume string // token of the session to go on with, if any
	After  uint64 // position to go on after; from where the session stood if 0
	Source net.IP // local address; any if nil
	Buffer int    // bytes read at once; 8192 if zero
}

// Access is what agents present, and whom they believe.
type Access struct {
	Token string      // none if empty
	TLS   *tls.Config // for wss and https; nil: the system's
}

// secure returns the settings of a connection to a host.
func (a Access) secure(host string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.TLS != nil {
		c = a.TLS.Clone()
	}
	c.ServerName = host
	return c
}

// dialTime bounds how long one attempt to connect takes.
const dialTime = 20 * time.Second

// parse returns the address to connect to, and the one to ask for.
func (t Target) parse() (*url.URL, error) {
	u, err := url.Parse(t.Edge)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, fmt.Errorf("%q is no ws:// or wss:// address", t.Edge)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/ws"
	}
	q := u.Query()
	q.Set("agent_id", t.Agent)
	if t.Resume != "" {
		q.Set("resume_token", t.Resume)
	}
	if t.After > 0 {
		q.Set("last_seq", strconv.FormatUint(t.After, 10))
	}
	u.RawQuery = q.Encode()
	return u, nil
}

// Dial connects an agent and returns once the edge says that it is registered, 20 s at most. ctx bounds only that. An edge that
// can't be reached is agora.Unavailable, one that refuses says why. The caller owes a call of Close or Cut.
func Dial(ctx context.Context, t Target) (*Conn, error) {
	u, err := t.parse()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	nc, err := t.open(ctx, u)
	if err != nil {
		return nil, unavailable("no connection to "+u.Host, err)
	}
	size := t.Buffer
	if size == 0 {
		size = 8192
	}
	c := &Conn{ID: t.Agent, nc: nc, r: bufio.NewReaderSize(nc, size)}
	defer c.unblock(ctx)()
	if err = c.shake(u, t.Token); err == nil {
		err = c.register()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func (t Target) open(ctx context.Context, u *url.URL) (net.Conn, error) {
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[string]string{"ws": "80", "wss": "443"}[u.Scheme]
	}
	var d net.Dialer
	if t.Source != nil {
		d.LocalAddr = &net.TCPAddr{IP: t.Source}
	}
	nc, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil || u.Scheme == "ws" {
		return nc, err
	}
	secure := tls.Client(nc, t.secure(host))
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return secure, nil
}

// shake asks for a WebSocket.
func (c *Conn) shake(u *url.URL, token string) error {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	key := base64.StdEncoding.EncodeToString(nonce)
	var ask strings.Builder
	fmt.Fprintf(&ask, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", u.RequestURI(), u.Host, key)
	if token != "" {
		fmt.Fprintf(&ask, "Authorization: Bearer %s\r\n", token)
	}
	if err := c.Write([]byte(ask.String() + "\r\n")); err != nil {
		return unavailable("no answer from "+u.Host, err)
	}
	r, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return unavailable("no answer from "+u.Host, err)
	}
	if r.StatusCode != http.StatusSwitchingProtocols {
		return refusal(r)
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if r.Header.Get("Sec-Websocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]) {
		return agora.Errorf(agora.Unavailable, "%s speaks no WebSocket", u.Host)
	}
	return nil
}

// refusal returns what an edge says instead of becoming a WebSocket: a code and a sentence.
func refusal(r *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(r.Body, 1024)) // what can be had of it
	code, message, ok := strings.Cut(strings.TrimSpace(string(b)), ": ")
	switch {
	case ok:
		return agora.Errorf(agora.Code(code), "%s", message)
	case r.StatusCode == http.StatusUnauthorized:
		return agora.Errorf(agora.Unauthorized, "%s", r.Status)
	}
	return agora.Errorf(agora.Unavailable, "%s", r.Status)
}

// register reads the edge's first words.
func (c *Conn) register() error {
	b, err := c.Next()
	if err != nil {
		return unavailable(c.ID+" was not registered", err)
	}
	var f wire.Frame
	if err := wire.DecodeAnswer(b, &f); err != nil {
		return err
	}
	switch f.Type {
	case "agent.registered":
		c.Token, c.Last = f.ResumeToken, f.LastSeq
		return nil
	case "error":
		return agora.Errorf(agora.Code(f.Code), "%s: %s", c.ID, f.Message)
	}
	return agora.Errorf(agora.Unavailable, "%s was greeted with %s", c.ID, f.Type)
}

func unavailable(message string, cause error) error {
	return &agora.Error{Code: agora.Unavailable, Message: message, Cause: cause}
}
