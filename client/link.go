package client

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire"
	"github.com/gorilla/websocket"
)

const (
	handshakeTime    = 15 * time.Second // an edge may wait for the one before it, up to its lease of 10s
	defaultHeartbeat = 30 * time.Second
	doubtTime        = 30 * time.Second // an edge may need its lease and a time-out to see that a connection is gone
	maxAnswer        = 64 << 20
	goodbyeTime      = 2 * time.Second // for the other side to confirm a close
	restarts         = 8               // times that Dial tries to end the session of an earlier process
)

// link is one connection, bound to the agent.
type link struct {
	conn      *websocket.Conn
	heartbeat time.Duration
	agent     string // which agent the credentials are for, where that is one alone; escaped
	resumed   bool
	after     uint64       // position after which the mailbox goes on, where placed
	placed    bool         // the edge has told it
	expires   time.Time    // when the credentials end; zero for never
	notBefore time.Time    // when the edge, which is leaving, wants a reconnect; the reader's
	buf       bytes.Buffer // of the frame being read; the reader's
}

// dialFirst connects a client that has no session. One that a process before
// it has left is ended first: this one can't know what that had sent.
func (c *Client) dialFirst(ctx context.Context) (*link, error) {
	for n := range restarts {
		l, err := c.dialAny(ctx)
		if err != nil || !l.resumed {
			return l, err
		}
		l.leave()
		c.token = ""
		if !pause.For(ctx, c.cfg.Backoff.after(n)) { // an edge confirms a goodbye before all is ended
			return nil, ctx.Err()
		}
	}
	return nil, agora.Errorf(agora.Unavailable, "the session of an earlier connection does not end")
}

// dialAny tries each address once, and returns the first error that is final, else the last one that says when to come
// back, else the last one.
func (c *Client) dialAny(ctx context.Context) (*link, error) {
	var why error
	for range c.addresses {
		l, err := c.dial(ctx, c.addresses[c.at])
		if err == nil || final(err) || ctx.Err() != nil {
			return l, err
		}
		if why == nil || retryAfter(err) > 0 || retryAfter(why) == 0 {
			why = err
		}
		c.next()
	}
	return nil, why
}

// next goes on to the next address.
func (c *Client) next() { c.at = (c.at + 1) % len(c.addresses) }

// dial connects to one edge and registers.
func (c *Client) dial(ctx context.Context, url string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	d := websocket.Dialer{Proxy: http.ProxyFromEnvironment, NetDialContext: c.cfg.Dial, TLSClientConfig: c.cfg.TLS}
	header := c.cfg.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	var err error
	if c.presented, err = c.credentials(ctx); err != nil {
		return nil, err
	}
	if c.presented != "" {
		header.Set("Authorization", "Bearer "+c.presented)
	}
	conn, answer, err := d.DialContext(ctx, url, header)
	if err != nil {
		if ctx.Err() != nil && answer == nil {
			err = context.Cause(ctx)
		}
		return nil, handshakeError(err, answer)
	}
	conn.SetReadLimit(maxAnswer)
	l := &link{conn: conn, heartbeat: defaultHeartbeat, agent: answer.Header.Get(agentHeader)}
	if err := c.register(ctx, l); err != nil {
		conn.Close()
		return nil, c.doubted(err)
	}
	return l, nil
}

// doubted returns the error of a registration. When one went without an
// answer, the edge may hold the id for a connection that is gone, under a token
// that never came here: it takes the edge a while to notice, so AGENT_EXISTS is not final then.
func (c *Client) doubted(err error) error {
	e, ok := errors.AsType[*agora.Error](err)
	switch {
	case !ok || e.Code != agora.AgentExists:
		if !final(err) {
			c.doubt = time.Now()
		}
	case c.doubts():
		return &agora.Error{Code: agora.Unavailable, Message: "an earlier connection of this client still has the agent id", Cause: err}
	}
	return err
}

// doubts tells whether a registration has gone without an answer of late.
func (c *Client) doubts() bool { return !c.doubt.IsZero() && time.Since(c.doubt) < doubtTime }

// ghost tells whether a take-over may be the work of a connection of this client's own: its registration went
// without an answer, and came through behind that of the connection that followed it.
func (c *Client) ghost(err error) bool { return errors.Is(err, ErrTakenOver) && c.doubts() }

// register binds the connection to the agent and reads the answer.
func (c *Client) register(ctx context.Context, l *link) error {
	if c.card.Load() == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	defer stop()
	q := c.registration()
	if err := l.conn.WriteMessage(websocket.TextMessage, q.Append(nil)); err != nil {
		return lost(ctx, err)
	}
	f, err := l.answer(q.ID)
	switch {
	case err != nil:
		return lost(ctx, err)
	case f.Type == "agent.registered":
		c.welcome(l, f)
		return nil
	case f.Code == string(agora.InvalidRequest) && c.token != "":
		c.token = "" // the edge knows another one: its session goes on without
		return c.register(ctx, l)
	}
	return frameError(f)
}

// answer returns the answer to a registration: agent.registered or error.
func (l *link) answer(id string) (*wire.Frame, error) {
	f := new(wire.Frame)
	for {
		b, err := l.read()
		if err != nil {
			return nil, closeError(err)
		}
		if err := wire.DecodeAnswer(b, f); err != nil {
			return nil, err
		}
		of := f.ID
		if f.Type == "error" {
			of = f.RequestID
		}
		if (f.Type == "error" || f.Type == "agent.registered") && (of == id || of == "") {
			return f, nil
		}
	}
}

// registration is what the client says of itself and of where it was.
func (c *Client) registration() *wire.Frame {
	c.counter++
	q := &wire.Frame{
		Type: "agent.register", ID: "register-" + strconv.FormatUint(c.counter, 10), Agent: c.card.Load(),
		ResumeToken: c.token, Receipts: agora.Stored, Positions: map[string]uint64{},
	}
	q.LastSeq, q.HasLastSeq = c.mail.position()
	for _, s := range c.joined() {
		if seq, known := s.log.settled(); known {
			q.Positions[s.name] = seq
		}
	}
	if len(q.Positions) == 0 {
		q.Positions = nil
	}
	return q
}

// welcome takes the answer to a registration.
func (c *Client) welcome(l *link, f *wire.Frame) {
	l.resumed, l.expires = f.Resumed, ending(f)
	if f.HasLastSeq {
		c.mail.begin(f.LastSeq)
		l.after, l.placed = f.LastSeq, true
	}
	if f.HeartbeatInterval > 0 {
		l.heartbeat = time.Duration(f.HeartbeatInterval * float64(time.Second))
	}
	c.token = f.ResumeToken
}

// lost is the error of a connection that broke while it was made.
func lost(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*agora.Error](err); ok || errors.Is(err, ErrTakenOver) {
		return err
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &agora.Error{Code: agora.Unavailable, Message: "the edge did not answer", Cause: err}
}

// read returns the next frame, in a buffer that the next read takes again.
func (l *link) read() ([]byte, error) {
	_, r, err := l.conn.NextReader()
	if err != nil {
		return nil, err
	}
	if l.buf.Cap() > 1<<20 {
		l.buf = bytes.Buffer{}
	}
	l.buf.Reset()
	_, err = l.buf.ReadFrom(r)
	return l.buf.Bytes(), err
}

// patience is how long the edge may be silent. It answers our pings, of which
// there are three in a heartbeat, but not while it reads no faster than a rate allows.
func (l *link) patience() time.Duration { return l.heartbeat * 3 / 2 }

// leave ends the connection and the session.
func (l *link) leave() {
	defer l.conn.Close()
	deadline := time.Now().Add(goodbyeTime)
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if l.conn.WriteControl(websocket.CloseMessage, bye, deadline) != nil {
		return
	}
	l.conn.SetReadDeadline(deadline)
	for {
		if _, _, err := l.conn.NextReader(); err != nil {
			return
		}
	}
}
