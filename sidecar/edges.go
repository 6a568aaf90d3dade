package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/wire/p2p"
)

const (
	edgeTime   = 5 * time.Second // until an edge has answered
	maxListing = 1 << 20         // bytes of what it says
)

// edges asks the edges by HTTP for what is said of peers, and tells them of the agent's own.
type edges struct {
	token func(context.Context) (string, error)
	http  http.Client

	mu   sync.Mutex // guards the field below
	urls []string   // the one that has answered last is the first; replaced as a whole
}

func newEdges(cfg *Config) *edges {
	source := cfg.Client.TokenSource
	if source == nil {
		source = client.TokenSource(func(context.Context) (string, error) { return cfg.Client.Token, nil })
	}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.Client.TLS, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}
	return &edges{urls: edgeURLs(cfg.Client.URLs), token: source, http: http.Client{
		Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (e *edges) close() { e.http.CloseIdleConnections() }

// edgePeer is an edge as GET /p2p names it.
type edgePeer struct {
	Edge      string   `json:"edge"`
	Peer      string   `json:"peer_id"`
	Addresses []string `json:"addresses"`
}

// edgeList is the answer to GET /p2p. Edges of an earlier version say no more than the edges.
type edgeList struct {
	Edges    []edgePeer `json:"edges"`
	Draining []string   `json:"draining"`
	Tenant   string     `json:"tenant"`
	Now      int64      `json:"now"` // of the cluster, in milliseconds since 1970
	Open     bool       `json:"open"`
}

// peerIDs returns those of all edges, also of those that drain.
func (l *edgeList) peerIDs() []string {
	all := slices.Clone(l.Draining)
	for _, e := range l.Edges {
		all = append(all, e.Peer)
	}
	return all
}

// list returns the edges that are peers; nil where edges have no door for those.
func (e *edges) list(ctx context.Context) (*edgeList, error) {
	said := new(edgeList)
	there, err := e.ask(ctx, http.MethodGet, "/p2p", nil, said)
	if err != nil || !there {
		return nil, err
	}
	return said, nil
}

// access asks whether a peer may speak to an agent. An edge that does not know that question is passed over: edges of
// several versions may be there.
func (e *edges) access(ctx context.Context, peer, agent string) (said accessAnswer, err error) {
	path := "/p2p/access?" + url.Values{"peer_id": {peer}, "agent_name": {agent}}.Encode()
	err = agora.Errorf(agora.Unavailable, "no edge knows who may speak to an agent by libp2p")
	for _, at := range e.addresses() {
		there, failed := e.askOne(ctx, http.MethodGet, at+path, nil, &said)
		if there && failed == nil {
			return said, nil
		}
		if failed != nil {
			err = failed
		}
		if ctx.Err() != nil {
			break
		}
	}
	return said, err
}

// registration is what POST /register takes.
type registration struct {
	Agent        string   `json:"agent_name"`
	Peer         string   `json:"peer_id"`
	Addresses    []string `json:"addrs"`
	Description  string   `json:"description,omitempty"`
	Version      string   `json:"version,omitempty"`
	Skills       []skill  `json:"skills,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	TTL          int      `json:"ttl"` // seconds

	Proof *p2p.Proof `json:"proof,omitempty"`
}

// registered is the answer to it.
type registered struct {
	Bound *bool  `json:"bound"` // nil where an edge of an earlier version has bound the peer
	Why   string `json:"why"`
}

type skill struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// register tells an edge which peer the agent is; it returns false where edges have no door for peers.
func (e *edges) register(ctx context.Context, r registration) (said registered, there bool, err error) {
	there, err = e.ask(ctx, http.MethodPost, "/register", r, &said)
	return said, there, err
}

// withdraw ends the registration of an agent; its session continues.
func (e *edges) withdraw(ctx context.Context, id string) error {
	_, err := e.ask(ctx, http.MethodDelete, "/agents/"+url.PathEscape(id), nil, nil)
	return err
}

// edgeError is an answer of an edge that is no success.
type edgeError struct {
	status int
	text   string
}

// Error returns what was asked, and what the edge said.
func (e *edgeError) Error() string { return e.text }

// ask asks one edge after the other until one answers. there is false where that knows no such path.
func (e *edges) ask(ctx context.Context, method, path string, say, into any) (there bool, err error) {
	urls := e.addresses()
	for k, at := range urls {
		if there, err = e.askOne(ctx, method, at+path, say, into); err == nil {
			e.prefer(urls[k])
			return there, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if e, ok := errors.AsType[*edgeError](err); ok && e.status < 500 { // what one refuses, all do
			return false, err
		}
	}
	return false, err
}

// addresses returns those of the edges, the one that has answered last first. They are not to be changed.
func (e *edges) addresses() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.urls
}

// prefer has an edge be asked first.
func (e *edges) prefer(at string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if k := slices.Index(e.urls, at); k > 0 {
		e.urls = slices.Concat(e.urls[k:], e.urls[:k])
	}
}

func (e *edges) askOne(ctx context.Context, method, at string, say, into any) (there bool, err error) {
	if say != nil {
		ctx = context.WithoutCancel(ctx) // what an edge is told and what it is told next may not cross
	}
	ctx, cancel := context.WithTimeout(ctx, edgeTime)
	defer cancel()
	var body io.Reader
	if say != nil {
		b, err := json.Marshal(say)
		if err != nil {
			return false, err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return false, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	token, err := e.token(ctx)
	if err != nil {
		return false, fmt.Errorf("credentials: %w", err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := e.http.Do(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxListing))
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusMethodNotAllowed, resp.StatusCode == http.StatusUpgradeRequired:
		return false, nil
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return false, &edgeError{resp.StatusCode, fmt.Sprintf("%s %s: %s: %s", method, host(at), resp.Status, bytes.TrimSpace(b[:min(len(b), 300)]))}
	case err != nil || into == nil:
		return err == nil, err
	}
	return true, json.Unmarshal(b, into)
}

// host returns what of an address may stand in a log.
func host(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	return u.Host + u.Path
}
