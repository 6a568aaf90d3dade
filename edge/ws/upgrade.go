package ws

import (
	"bufio"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/early"
	"github.com/agora-relay/agora/wire"
)

// upgrader only answers the handshake, with the buffers of the HTTP server. A client that offers the subprotocol agora
// learns that it is spoken.
var upgrader = websocket.Upgrader{
	Subprotocols: []string{wire.Subprotocol},
	CheckOrigin:  func(*http.Request) bool { return true }, // the door has looked
}

// ServeHTTP lets an agent in. It returns once the connection is upgraded; a
// goroutine of the door's own reads from then on, so that nothing of the HTTP
// server stays in memory.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e := ambiguous(r); e != nil {
		d.turnAway(w, r, http.StatusBadRequest, e)
		return
	}
	if err := d.pages(r); err != nil {
		d.RefusePage(w, r, err)
		return
	}
	if plain(r) {
		d.explain(w, r)
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

// letIn asks whether the request may become a connection. On success the caller owes a call of dismiss.
func (d *Door) letIn(r *http.Request) (*conn, error) {
	a, err := d.node.admit(r.Context(), d.client(r), credentials(r))
	if err != nil {
		return nil, err
	}
	if !d.admit() {
		a.Release()
		return nil, errDraining
	}
	return newConn(d, a), nil
}

// agentHeader of the answer to a handshake names the agent that its credentials are for, where that is one alone.
const agentHeader = "Agora-Agent"

// nameAgent is what the answer to the handshake says of who connects.
func (c *conn) nameAgent() http.Header {
	p := c.Actor.Principal()
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

// turnAway refuses before the upgrade.
func (d *Door) turnAway(w http.ResponseWriter, r *http.Request, status int, e *agora.Error) {
	d.stats.Refused.Add(1)
	d.refusals.Note(e, func() []slog.Attr {
		return []slog.Attr{slog.String("from", d.client(r).String()), slog.Int("status", status)}
	})
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close") // else what is left of the request would be waited for
	}
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

// pages refuses requests of web pages that may not connect. What asks for no WebSocket changes nothing, so a person may
// look by a browser.
func (d *Door) pages(r *http.Request) error {
	if plain(r) {
		return d.cfg.Pages.Check(r)
	}
	return d.cfg.Pages.CheckChange(r)
}

// RefusePage answers a request that a web page was not allowed to send.
func (d *Door) RefusePage(w http.ResponseWriter, r *http.Request, err error) {
	e := agora.AsError(err)
	d.turnAway(w, r, e.Code.Status().HTTP, e)
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
	if h.Card.ID, h.err = agora.ParseOwnID(strings.Clone(q.Get("agent_id"))); h.err != nil {
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
	if h.Receipts, h.err = wire.ParseReceipts(q.Get("receipts")); h.err != nil {
		return h
	}
	if most := q.Get("max_frame"); most != "" {
		n, err := strconv.ParseUint(most, 10, 53)
		if err != nil || n < wire.MinMaxFrame {
			h.err = agora.Errorf(agora.InvalidRequest, "max_frame is not a number from %d and below 2^53", wire.MinMaxFrame)
		}
		h.MaxFrame = int(n)
	}
	return h
}

// plain reports whether somebody asks without wanting a WebSocket: a browser, or a client whose upgrade a proxy has
// taken away.
func plain(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !websocket.IsWebSocketUpgrade(r)
}

// explain says what this is. Anyone who asks needs no credentials for it, and learns nothing else.
func (d *Door) explain(w http.ResponseWriter, r *http.Request) {
	d.stats.Refused.Add(1)
	d.refusals.Note(agora.Errorf(agora.InvalidRequest, "no upgrade"), func() []slog.Attr {
		return []slog.Attr{slog.String("from", d.client(r).String()), slog.Int("status", http.StatusUpgradeRequired)}
	})
	if r.ProtoMajor > 1 {
		http.Error(w, string(agora.InvalidRequest)+": "+whatIsWrong, http.StatusUpgradeRequired)
		return
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	http.Error(w, string(agora.InvalidRequest)+": "+whatThisIs, http.StatusUpgradeRequired)
}

// whatIsWrong is told to who asks over HTTP/2, which knows no upgrade.
const whatIsWrong = "this is an edge of Agora, whose WebSockets are opened over HTTP/1.1 alone; this request came over HTTP/2, " +
	"from a client, or a proxy on its way, that is to speak HTTP/1.1 to this path. " +
	"See https://github.com/agora-relay/agora/blob/main/PROTOCOL.md"

const whatThisIs = "this is an edge of Agora, a relay for AI agents, which connect here by WebSocket; " +
	"this request asks for no upgrade to one, or a proxy on its way has taken that out. " +
	"See https://github.com/agora-relay/agora/blob/main/PROTOCOL.md"

// single are the headers and parameters that decide who connects: what stands
// before this server might go by another one of several than the door does.
var single = struct{ headers, parameters []string }{
	headers:    []string{"Authorization", "Origin", "Host", "Sec-Websocket-Key"},
	parameters: []string{"token", "agent_id", "resume_token", "last_seq", "receipts", "max_frame"},
}

// ambiguous returns what in a handshake could be understood in several ways; nil when nothing could.
func ambiguous(r *http.Request) *agora.Error {
	if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return agora.Errorf(agora.InvalidRequest, "a handshake has no body")
	}
	for _, name := range single.headers {
		if len(r.Header[name]) > 1 {
			return agora.Errorf(agora.InvalidRequest, "header %s stands twice", name)
		}
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return agora.Errorf(agora.InvalidRequest, "the query can't be read")
	}
	for _, name := range single.parameters {
		if len(q[name]) > 1 {
			return agora.Errorf(agora.InvalidRequest, "parameter %s stands twice", name)
		}
	}
	return nil
}

// hijacker notes which socket gorilla takes over from the HTTP server for its handshake. After that
// gorilla is not needed any more: frames are read and written by this package.
type hijacker struct {
	http.ResponseWriter
	socket net.Conn
}

// Hijack takes the connection over from the HTTP server.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	socket, rw, err := early.Handshake{ResponseWriter: h.ResponseWriter}.Hijack()
	if pending, ok := socket.(*admission.PendingConn); ok {
		socket = pending.NetConn() // it was admitted: what it sends counts elsewhere
	}
	h.socket = socket
	return socket, rw, err
}
