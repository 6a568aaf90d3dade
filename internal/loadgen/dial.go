package loadgen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/loadgen/socket"
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

// Conn is the connection of one agent to an edge. One goroutine reads; any may write.
type Conn struct {
	*socket.Conn
	ID    string // of the agent
	Token string // resumes its session
	Last  uint64 // position after which the edge began
}

// Write writes whole frames, as [AppendText] makes them. It blocks while the edge reads no further.
func (c *Conn) Write(frames []byte) error { return c.Send(frames) }

// dialTime bounds how long one attempt to connect takes.
const dialTime = 20 * time.Second

// parse returns the address to ask for.
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

// Dial connects an agent and returns once the edge says that it is registered, 20 s at most. ctx bounds only that. An
// edge that can't be reached is agora.Unavailable, one that refuses says why. The caller owes a call of Close or Cut.
func Dial(ctx context.Context, t Target) (*Conn, error) {
	u, err := t.parse()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	s, err := socket.Dial(ctx, socket.Target{URL: u, Token: t.Token, TLS: t.TLS, Source: t.Source, Buffer: t.Buffer})
	if refused, ok := errors.AsType[*socket.RefusedError](err); ok {
		return nil, refusal(refused)
	}
	if err != nil {
		return nil, unavailable("no connection to "+u.Host, err)
	}
	c := &Conn{Conn: s, ID: t.Agent}
	defer c.Until(ctx)()
	if err := c.register(); err != nil {
		_ = c.NetConn().Close() // the error says more
		return nil, err
	}
	return c, nil
}

// refusal returns what an edge says instead of becoming a WebSocket: a code and a sentence.
func refusal(e *socket.RefusedError) error {
	code, message, ok := strings.Cut(e.Said, ": ")
	switch {
	case ok:
		return agora.Errorf(agora.Code(code), "%s", message)
	case e.Status == http.StatusUnauthorized:
		return agora.Errorf(agora.Unauthorized, "%s", e.Line)
	}
	return agora.Errorf(agora.Unavailable, "%s", e.Line)
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
