package iat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// httpRequest is a request that any edge may be asked.
type httpRequest struct {
	method, path string
	header       http.Header // may be nil
	body         []byte      // JSON; nil for none
}

// errSilent ends a connection on which nothing comes that should.
var errSilent = errors.New("the edge is silent")

const headTime = 20 * time.Second // within which an edge begins its answer

// attempt asks the edge whose turn it is. Its error is an *[Error], or that of ctx. Closing the body of the answer ends
// the request; silence is what ends it with [errSilent].
func (c *Client) attempt(ctx context.Context, r httpRequest) (*http.Response, context.CancelCauseFunc, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(headTime, func() { cancel(errSilent) })
	resp, err := c.do(ctx, r)
	late.Stop()
	if err != nil {
		if ended := context.Cause(ctx); ended != nil && !errors.Is(ended, errSilent) {
			err = ended
		}
		cancel(nil)
		return nil, nil, err
	}
	resp.Body = &body{resp.Body, cancel}
	return resp, cancel, nil
}

func (c *Client) do(ctx context.Context, r httpRequest) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.edge()+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, &Error{Code: agora.InvalidRequest, Message: "the request can't be made", Cause: err}
	}
	for key, values := range r.header {
		req.Header[key] = values
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if err := c.authorize(ctx, req); err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the address may hold a resume token
		}
		return nil, broke(err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, nil
}

func (c *Client) authorize(ctx context.Context, req *http.Request) error {
	token := c.cfg.Token
	if c.cfg.TokenSource != nil {
		var err error
		if token, err = c.cfg.TokenSource(ctx); err != nil {
			return &Error{Code: agora.Unavailable, Message: "there are no credentials now", Cause: err}
		}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// body is that of an answer, whose request ends with it.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// edge returns the address of the edge whose turn it is.
func (c *Client) edge() string { return c.urls[int(c.at.Load())%len(c.urls)] }

// elsewhere makes it the turn of the next edge.
func (c *Client) elsewhere() { c.at.Add(1) }

// persist makes a request until it succeeds, or fails permanently, or Patience is over.
func (c *Client) persist(ctx context.Context, r httpRequest) (*http.Response, error) {
	t := trier{c: c}
	for {
		resp, _, err := c.attempt(ctx, r)
		if err == nil {
			return resp, nil
		}
		if err := t.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// trier says whether, and when, what failed is tried again.
type trier struct {
	c       *Client
	endless bool      // Patience has no end
	n       int       // attempts that failed in a row
	since   time.Time // when the first of them did
}

// again blocks until it is time for another attempt, at another edge. It returns err where there is to be none, or why
// ctx ended.
func (t *trier) again(ctx context.Context, err error) error {
	e, ok := errors.AsType[*Error](err)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !ok || !t.passes(e) {
		return err
	}
	if t.n == 0 {
		t.since = time.Now()
	}
	t.n++
	wait := e.RetryAfter
	if rounds := t.n - len(t.c.urls); wait == 0 && rounds >= 0 {
		wait = t.c.cfg.Backoff.after(rounds)
	}
	if !t.endless && t.n >= len(t.c.urls) && time.Since(t.since)+wait > t.c.cfg.Patience {
		return err
	}
	t.c.elsewhere()
	if !pause.For(ctx, wait) {
		return context.Cause(ctx)
	}
	return nil
}

// worked says that the last attempt did not fail.
func (t *trier) worked() { t.n = 0 }

// passes reports whether what an edge says may be otherwise later, or elsewhere.
func (t *trier) passes(e *Error) bool {
	switch e.Code {
	case agora.Unavailable, agora.RateLimited:
		return true
	case agora.Unauthorized:
		return t.c.cfg.TokenSource != nil
	}
	return false
}
