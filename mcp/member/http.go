package member

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpLink is the HTTP of one session: it bounds what is read of answers, and sees when the server is gone, or no
// longer tells what changes. What it carries ends with the session's life.
type httpLink struct {
	base *http.Transport
	life context.Context
	gone func() // called when no connection can be made
	deaf func() // called when the server tells no changes any more
}

// transport returns the session's transport.
func (h *httpLink) transport(url string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: h}, MaxEventSize: 4 * maxEvent} // bounded here, before it carries how it is written
}

// RoundTrip makes a request, which ends with the life of the session as well.
func (h *httpLink) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(h.life, cancel)
	release := sync.OnceFunc(func() { stop(); cancel() })
	resp, err := h.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		defer release()
		if noOneThere(err) && r.Context().Err() == nil {
			if methodOf(r) == "tools/call" {
				notHanded(r.Context())
			}
			h.gone()
		}
		return nil, err
	}
	b := &body{ReadCloser: resp.Body, release: release}
	resp.Body = b
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case media == "text/event-stream":
		if r.Header.Get("Mcp-Method") == "subscriptions/listen" {
			b.over = h.deaf
		}
		resp.Body = newSpellingEvents(b)
	case r.Method == http.MethodPost:
		return resp, b.bound(r, resp)
	}
	return resp, nil
}

// noOneThere reports whether an error says that a request has reached nobody.
func noOneThere(err error) bool {
	var e *net.OpError
	return errors.As(err, &e) && e.Op == "dial"
}

// body is what is read of an answer.
type body struct {
	io.ReadCloser
	release func()
	over    func() // called when it ends; nil where nobody asks
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.over != nil {
		b.over()
	}
	return n, err
}

func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// bound reads a whole answer of at most maxLine bytes. In place of a larger one there is an error that ends its call
// alone.
func (b *body) bound(r *http.Request, resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(b.ReadCloser, maxLine+1))
	b.Close()
	if err != nil {
		return err
	}
	if len(text) > maxLine {
		text = tooLargeFor(r)
		resp.Header.Set("Content-Type", "application/json")
		resp.StatusCode = http.StatusOK
	} else if json.Valid(text) {
		text = keepSpelling(text)
	}
	if resp.ContentLength >= 0 {
		resp.ContentLength = int64(len(text))
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return nil
}

// codeTooLarge stands in the error that is put in the place of an answer that is too large.
const codeTooLarge = -32000

// tooLargeFor is the JSON-RPC error that stands for an answer to a request that is too large.
func tooLargeFor(r *http.Request) []byte {
	id := asked(r).ID
	if id == nil {
		id = json.RawMessage("null")
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, codeTooLarge, errTooLarge.Error())
}

// methodOf returns what a request asks for.
func methodOf(r *http.Request) string { return asked(r).Method }

// request is what names a JSON-RPC request.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// asked returns what the body of a request names; nothing where that can't be read again.
func asked(r *http.Request) (q request) {
	if r.GetBody == nil {
		return q
	}
	again, err := r.GetBody()
	if err != nil {
		return q
	}
	defer again.Close()
	_ = json.NewDecoder(again).Decode(&q)
	return q
}
