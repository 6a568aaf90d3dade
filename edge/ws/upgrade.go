package ws

import (
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/wire"
)

// upgrader only answers the handshake, with the buffers of the HTTP server.
var upgrader = websocket.Upgrader{
	CheckOrigin: func(*http.Request) bool { return true }, // the door has looked
}

// ServeHTTP lets an agent in. It returns once the connection is upgraded; a
// goroutine of the door's own reads from then on, so that nothing of the HTTP
// server stays in memory.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e := ambiguous(r); e != nil {
		d.turnAway(w, r, http.StatusBadRequest, e)
		return
	}
	if plain(r) {
		d.explain(w, r)
		return
	}
	if !d.welcome(r) {
		d.turnAway(w, r, http.StatusForbidden, agora.Errorf(agora.Forbidden, "this origin is not allowed"))
		return
	}
	c, err := d.letIn(r)
	if err != nil {
		e := agora.AsError(err)
		d.turnAway(w, r, e.Code.Status().HTTP, e)
		return
	}
	h := &hijacker{ResponseWriter: w}
	if _, err := upgrader.Upgrade(h, r, c.nameAgent()); err != nil { // it has been answered
		d.stats.Refused.Add(1)
		d.dismiss(c)
		return
	}
	c.socket = h.socket
	d.enlist(c)
	hello := greeting(r.URL.Query())
	d.work.Go(func() { c.begin(hello) })
}

// letIn asks everybody whether the request may become a connection: first those
// whom it costs next to nothing to refuse. On success the caller owes a call of dismiss.
func (d *Door) letIn(r *http.Request) (_ *conn, err error) {
	c := &conn{door: d}
	defer func() {
		if err != nil {
			c.giveBack()
		}
	}()
	if c.pass, err = d.node.gate.Enter(d.client(r)); err != nil {
		return nil, err
	}
	if c.seat, err = d.node.crowd.Enter(); err != nil {
		return nil, err
	}
	if c.actor, err = d.node.authenticate(r.Context(), credentials(r)); err != nil {
		return nil, err
	}
	if err = c.pass.Claim(c.actor); err != nil {
		return nil, err
	}
	if !d.admit() {
		return nil, errDraining
	}
	return c, nil
}

// agentHeader of the answer to a handshake names the agent that its credentials are for, where that is one alone.
const agentHeader = "Agora-Agent"

// nameAgent is what the answer to the handshake says of who connects.
func (c *conn) nameAgent() http.Header {
	p := c.actor.Principal()
	if p == nil {
		return nil
	}
	id, ok := p.Sole()
	if !ok {
		return nil
	}
	return http.Header{agentHeader: {url.PathEscape(string(id))}}
}

// client returns where a request comes from, by the word of trusted proxies.
func (d *Door) client(r *http.Request) netip.Addr {
	return d.node.proxies.Client(r.RemoteAddr, r.Header.Values("X-Forwarded-For"))
}

// giveBack has the connection counted no more.
func (c *conn) giveBack() {
	if c.seat != nil {
		c.seat.Leave()
	}
	if c.pass != nil {
		c.pass.Leave()
	}
}

// turnAway refuses before the upgrade.
func (d *Door) turnAway(w http.ResponseWriter, r *http.Request, status int, e *agora.Error) {
	d.stats.Refused.Add(1)
	d.refusals.note(e.Code, e.Message, func() []slog.Attr {
		return []slog.Attr{slog.String("from", d.client(r).String()), slog.Int("status", status)}
	})
	w.Header().Set("Connection", "close") // else what is left of the request would be waited for
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	http.Error(w, string(e.Code)+": "+e.Message, status)
}

// credentials returns what the request presents.
func credentials(r *http.Request) edge.Credentials {
	c := edge.Credentials{Token: token(r)}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Peer = r.TLS.VerifiedChains[0]
	}
	return c
}

// token returns the token of the request: that of the header before that of the URL.
func token(r *http.Request) string {
	if scheme, t, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(t)
	}
	return r.URL.Query().Get("token")
}

// welcome tells whether the page that opens the connection may. Programs send
// no Origin, and may.
func (d *Door) welcome(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.ContainsFunc(d.cfg.Origins, func(o string) bool { return o == "*" || strings.EqualFold(o, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if !d.cfg.Loopback {
		return strings.EqualFold(u.Host, r.Host)
	}
	// Without credentials a page of any name that its owner lets point at this
	// machine would be of the same host: only names that nobody can do that with count.
	return isLoopback(u.Hostname()) || strings.EqualFold(u.Host, r.Host) && isAddress(u.Hostname())
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// hello is what a URL says about who connects; nil when it does not.
type hello struct {
	edge.Hello
	err error // what is wrong with it
}

// greeting reads the query of the URL: agent_id binds at connect.
func greeting(q url.Values) *hello {
	if !q.Has("agent_id") {
		return nil
	}
	h := &hello{}
	h.Heartbeat, h.Resume = true, q.Get("resume_token")
	if h.Card.ID, h.err = agora.ParseAgentID(strings.Clone(q.Get("agent_id"))); h.err != nil {
		return h
	}
	h.Card.Name = string(h.Card.ID)
	if last := q.Get("last_seq"); last != "" {
		h.HasLast = true
		if h.LastSeq, h.err = strconv.ParseUint(last, 10, 53); h.err != nil {
			h.err = agora.Errorf(agora.InvalidRequest, "last_seq is not a number below 2^53")
			return h
		}
	}
	h.Receipts, h.err = wire.ParseReceipts(q.Get("receipts"))
	return h
}
