package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// admit asks whether a request may be answered, in the order of what it costs to refuse. On success the caller owes a call of Release.
func (k *Kit) admit(x *Exchange) (edge.Admission, error) {
	x.unready = k.node.ready()
	if x.unready != nil && x.path.Token == nil {
		return edge.Admission{}, x.unready
	}
	most := authTime
	if x.path.Token != nil {
		most += k.cfg.BodyTime
	}
	ctx, cancel := context.WithTimeout(x.Context(), most)
	defer cancel()
	a, err := k.node.admit(ctx, k.client(x.Request), x.credentials)
	if err == nil {
		a.Actor.CountTogether()
	}
	return a, err
}

// letIn is admit, apart where the answer is one that lasts.
func (k *Kit) letIn(x *Exchange) (a edge.Admission, err error) {
	if !x.path.Lasts {
		return k.admit(x)
	}
	Apart(func() { a, err = k.admit(x) })
	return a, err
}

// credentials returns what the request presents: where its header has no token and its connection no certificate, what the path
// finds in the body. While the edge can do nothing, the body is read all the same, so that the refusal can say what it is about.
func (x *Exchange) credentials(a edge.Admission) (edge.Credentials, error) {
	c := credentials(x.Request)
	if x.path.Token == nil || x.unready == nil && (c.Token != "" || len(c.Peer) > 0) {
		return c, nil
	}
	x.admission = a // by which the body is counted
	token, err := x.path.Token(x)
	if x.unready != nil {
		return c, x.unready
	}
	c.Token = token
	return c, err
}

// authTime bounds how long a request waits for its credentials to be verified.
const authTime = 10 * time.Second

// credentials returns what a request presents: a token in its header, a certificate. Nothing in the URL counts, as URLs are logged: paths say otherwise by
// their Token.
func credentials(r *http.Request) (c edge.Credentials) {
	if scheme, t, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		c.Token = strings.TrimSpace(t)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Peer = r.TLS.VerifiedChains[0]
	}
	return c
}

// single are the headers that decide who asks and what for: what stands before this server might go by another one of several.
var single = []string{"Authorization", "Origin", "Host", "Content-Type", "Content-Encoding", "Idempotency-Key", "Last-Event-Id"}

// ambiguous returns what in a request could be understood in several ways; nil when nothing could.
func ambiguous(r *http.Request) error {
	for _, name := range single {
		if len(r.Header[name]) > 1 {
			return agora.Errorf(agora.InvalidRequest, "header %s stands twice", name)
		}
	}
	return nil
}
