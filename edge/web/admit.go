package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// admit asks whether a request may be answered, in the order of what it costs to refuse. On success the caller owes a
// call of Release.
func (k *Kit) admit(x *Exchange) (edge.Admission, error) {
	if err := k.node.ready(); err != nil {
		if x.path.Head != nil {
			_, _ = x.read(k, nil) // so that the refusal can say what it is about
			x.known()
		}
		return edge.Admission{}, err
	}
	most := authTime
	if x.path.Head != nil {
		most += k.cfg.BodyTime
	}
	ctx, cancel := context.WithTimeout(x.Context(), most)
	defer cancel()
	defer x.known() // it is a stranger no more, or refused
	a, err := k.node.admit(ctx, k.client(x.Request), func() (edge.Credentials, error) { return x.credentials(ctx) })
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

// credentials returns what the request presents: where its header has no token and its connection no certificate, what
// the path finds elsewhere. Of the body as little as it takes is read, and nothing where nobody is asked for
// credentials.
func (x *Exchange) credentials(ctx context.Context) (edge.Credentials, error) {
	c := credentials(x.Request)
	if c.Token != "" || len(c.Peer) > 0 {
		return c, nil
	}
	var err error
	switch {
	case x.path.Token != nil:
		c.Token, err = x.path.Token(x)
	case x.path.Head != nil && !x.kit.node.open(ctx):
		c.Token, err = x.read(x.kit, x.path.Head.Scan())
	}
	return c, err
}

// authTime bounds how long a request waits for its credentials to be verified.
const authTime = 10 * time.Second

// credentials returns what a request presents: a token in its header, a certificate. Nothing in the URL counts, as URLs
// are logged: paths say otherwise by their Token.
func credentials(r *http.Request) (c edge.Credentials) {
	if scheme, t, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		c.Token = strings.TrimSpace(t)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Peer = r.TLS.VerifiedChains[0]
	}
	return c
}

// single are the headers that decide who asks and what for: what stands before this server might go by another one of
// several.
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
