package client

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire"
	"github.com/gorilla/websocket"
)

const (
	handshakeTime = 15 * time.Second // an edge may wait for the one before it, up to its lease of 10s
	doubtTime     = 30 * time.Second // an edge may need its lease and a time-out to see that a connection is gone
	maxAnswer     = 64 << 20
	restarts      = 8 // times that Dial tries to end the session of an earlier process
)

// connector connects to edges, one after the other, and registers the agent there.
type connector struct {
	cfg         Config
	log         *slog.Logger
	life        *lifetime
	addresses   []string
	card        atomic.Pointer[wire.Agent] // what is registered; nil for nobody
	credentials *credentials
	checkpoints *checkpoints

	// One goroutine at a time connects, and owns these.
	at      int       // index of the address in use
	token   string    // resumes the session
	counter uint64    // of ids of registrations
	doubt   time.Time // when a registration went without an answer last; zero for never
}

// newConnector returns a connector for what a configuration, its defaults filled in, says.
func newConnector(cfg Config, log *slog.Logger, life *lifetime, marks *checkpoints) (*connector, error) {
	c := &connector{
		cfg: cfg, log: log, life: life, checkpoints: marks,
		credentials: &credentials{token: cfg.Token, source: cfg.TokenSource, patience: cfg.Patience, log: log},
	}
	var err error
	if c.addresses, err = cfg.addresses(); err != nil || cfg.Agent == "" {
		return c, err
	}
	card, err := cfg.agent()
	c.card.Store(card)
	return c, err
}

// registers reports whether connections are bound to an agent.
func (c *connector) registers() bool { return c.card.Load() != nil }

// dialFirst connects a client that has no session. One that a process before
// it has left is ended first: this one can't know what that had sent.
func (c *connector) dialFirst(ctx context.Context) (*link, error) {
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

// reconnect tries edge after edge until one takes the agent again, waiting as
// long as the edges ask, and longer from round to round.
func (c *connector) reconnect(old *link, why error) (*link, error) {
	ctx, cancel := c.life.untilGoodbye()
	defer cancel()
	wait := time.Until(old.notBefore)
	if !errors.Is(why, errMoved) {
		wait = max(wait, rand.N(c.cfg.Backoff.Min))
	}
	for n := 0; ; n++ {
		if n > 0 {
			wait = c.cfg.Backoff.after(n - 1)
		}
		if asked := retryAfter(why); asked > 0 {
			wait = max(wait, asked+rand.N(asked/4+1))
		}
		if !pause.For(ctx, wait) {
			return nil, ErrClosed
		}
		c.next()
		l, err := c.dialAny(ctx)
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return nil, ErrClosed
		case final(err) && !c.credentials.hopeful(err):
			return nil, err
		}
		c.log.Warn("no edge answers", "err", err)
		c.status(false, err)
		why = err
	}
}

// dialAny tries each address once, and returns the first error that is final, else the last one that says when to come
// back, else the last one.
func (c *connector) dialAny(ctx context.Context) (*link, error) {
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
func (c *connector) next() { c.at = (c.at + 1) % len(c.addresses) }

// dial connects to one edge and registers.
func (c *connector) dial(ctx context.Context, url string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	d := websocket.Dialer{Proxy: http.ProxyFromEnvironment, NetDialContext: c.cfg.Dial, TLSClientConfig: c.cfg.TLS}
	header := c.cfg.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	token, err := c.credentials.present(ctx)
	if err != nil {
		return nil, err
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	conn, answer, err := d.DialContext(ctx, url, header)
	if err != nil {
		if ctx.Err() != nil && answer == nil {
			err = context.Cause(ctx)
		}
		return nil, handshakeError(err, answer)
	}
	conn.SetReadLimit(int64(cmp.Or(c.cfg.MaxFrame, maxAnswer)))
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
func (c *connector) doubted(err error) error {
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

// doubts reports whether a registration has gone without an answer recently.
func (c *connector) doubts() bool { return !c.doubt.IsZero() && time.Since(c.doubt) < doubtTime }

// ghost reports whether a take-over may be the work of a connection of this client's own: its registration went
// without an answer, and came through behind that of the connection that followed it.
func (c *connector) ghost(err error) bool { return errors.Is(err, ErrTakenOver) && c.doubts() }

// register binds the connection to the agent and reads the answer.
func (c *connector) register(ctx context.Context, l *link) error {
	if !c.registers() {
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
		c.token = "" // the edge knows another one: its session continues without
		return c.register(ctx, l)
	}
	return frameError(f)
}

// registration is what the client says of itself and of where it was.
func (c *connector) registration() *wire.Frame {
	c.counter++
	q := &wire.Frame{
		Type: "agent.register", ID: "register-" + strconv.FormatUint(c.counter, 10), Agent: c.card.Load(),
		ResumeToken: c.token, Receipts: agora.Stored, MaxFrame: uint64(c.cfg.MaxFrame),
	}
	c.checkpoints.state(q)
	return q
}

// welcome takes the answer to a registration.
func (c *connector) welcome(l *link, f *wire.Frame) {
	l.resumed, l.expires = f.Resumed, ending(f)
	if f.HasLastSeq {
		c.checkpoints.begin(f.LastSeq)
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
