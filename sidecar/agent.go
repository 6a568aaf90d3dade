package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/p2p"
)

const (
	dialTime   = 3 * time.Second
	maxHeader  = 64 << 10 // bytes of the header of an answer
	maxWhy     = 2 << 10  // bytes that are read of an answer that is a failure
	pieceSize  = 32 << 10
	userAgent  = "agora-sidecar"
	connsAgent = 64 // that are kept
)

// agent is the HTTP server that the sidecar stands beside. No redirect is followed, no proxy is asked, and no other
// host is ever connected to.
type agent struct {
	base  *url.URL
	http  http.Client
	limit *Limits
	slots chan struct{} // one for each request that is in progress
}

func newAgent(base *url.URL, limit *Limits) *agent {
	t := &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, TLSHandshakeTimeout: dialTime,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: connsAgent, IdleConnTimeout: time.Minute,
	}
	return &agent{
		base: base, limit: limit, slots: make(chan struct{}, limit.Concurrent),
		http: http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

func (a *agent) close() { a.http.CloseIdleConnections() }

// readCard returns what the agent shows at GET /card. Errors are a [p2p.Fault].
func (a *agent) readCard(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.limit.Card, errLate)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p2p.Target{Path: "/card"}.URL(a.base).String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", userAgent)
	resp, err := a.http.Do(r)
	if err != nil {
		return nil, unreached(ctx, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, p2p.MaxCard+1))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, refusalOf(resp, b)
	case err != nil:
		return nil, unreached(ctx, err)
	}
	if _, err := p2p.ReadCard(b, 0); err != nil {
		return nil, err
	}
	return b, nil
}

// question is what the agent is asked.
type question struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	stream *streamBody   // instead of body; owned by who asks
	within time.Duration // until the answer begins; FirstByte if 0
	sent   func()        // called once the agent was sent all of it, maybe again; nil for nothing
}

// traced returns a context of which the client tells when the agent was sent everything.
func (q *question) traced(ctx context.Context) context.Context {
	if q.sent == nil {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			q.sent()
		}
	}})
}

// put puts a question to the agent, and returns once the answer has begun, which the caller owes a call of Close. It
// waits while the agent has as much in hand as it may. An answer that is no success is an error; every error is a
// [p2p.Fault].
func (a *agent) put(ctx context.Context, q question) (*answer, error) {
	ctx, stop := context.WithCancelCause(ctx)
	x := &answer{agent: a, stop: stop, left: a.limit.Answer, timer: time.AfterFunc(time.Hour, func() { stop(errLate) })}
	begins := a.limit.FirstByte
	if q.within > 0 {
		begins = q.within
	}
	x.timer.Reset(begins)
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		x.end()
		return nil, unreached(ctx, ctx.Err())
	}
	err := x.begin(ctx, &q, begins)
	if err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// begin sends the request and reads the first piece of the answer.
func (x *answer) begin(ctx context.Context, q *question, begins time.Duration) error {
	var body io.Reader
	switch {
	case q.stream != nil:
		q.stream.waits, q.stream.goesOn = func() { x.timer.Stop() }, func() { x.timer.Reset(begins) }
		q.stream.ctx = ctx
		body = q.stream
	case q.body != nil:
		body = bytes.NewReader(q.body)
	}
	r, err := http.NewRequestWithContext(q.traced(ctx), q.method, q.url.String(), body)
	if err != nil {
		return p2p.NewFault(http.StatusBadRequest, "the request can't be made")
	}
	for name, values := range q.header {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", userAgent)
	resp, err := x.agent.http.Do(r)
	if err != nil {
		return unreached(ctx, err)
	}
	x.resp = resp
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxWhy)) // the status is told anyway
		return refusalOf(resp, b)
	}
	x.ctx = ctx
	x.buf = buffers.Get().(*[pieceSize]byte)
	n, err := x.piece(x.buf[:])
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	x.first, x.over = x.buf[:n], err != nil
	return nil
}

// buffers are those that answers are read into.
var buffers = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// answer is an answer of the agent that has begun. One goroutine reads it.
type answer struct {
	agent *agent
	resp  *http.Response
	ctx   context.Context
	stop  context.CancelCauseFunc
	timer *time.Timer      // ends the request when the agent is silent for too long; runs while the agent is waited for
	buf   *[pieceSize]byte // of pieces; nil before there is an answer
	first []byte           // a part of it: read, and not yet handed on
	over  bool             // nothing follows that
	left  int64
	freed bool
}

// errTooLarge is the error of an answer that continues for too long.
var errTooLarge = agora.Errorf(agora.MessageTooLarge, "the agent's answer is larger than it may be")

// Read implements io.Reader. An answer that breaks off, stops or is too large ends with a [p2p.Fault], never with
// io.EOF.
func (x *answer) Read(p []byte) (int, error) {
	if len(x.first) > 0 {
		n := copy(p, x.first)
		x.first = x.first[n:]
		return n, nil
	}
	if x.over {
		return 0, io.EOF
	}
	x.timer.Reset(x.agent.limit.Idle)
	return x.piece(p)
}

// next returns the next piece, which is valid until next is called again; errors are those of Read.
func (x *answer) next() ([]byte, error) {
	if b := x.first; len(b) > 0 {
		x.first = nil
		return b, nil
	}
	n, err := x.Read(x.buf[:])
	return x.buf[:n], err
}

// piece reads what comes next.
func (x *answer) piece(p []byte) (int, error) {
	for {
		n, err := x.resp.Body.Read(p)
		if n == 0 && err == nil {
			continue
		}
		x.timer.Stop()
		if x.left -= int64(n); x.left < 0 {
			x.stop(errTooLarge)
			return 0, p2p.FaultOf(errTooLarge)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			err = unreached(x.ctx, err)
		}
		return n, err
	}
}

// empty reports whether the answer has no body.
func (x *answer) empty() bool { return x.over && len(x.first) == 0 }

// Close gives up what was not read. Idempotent.
func (x *answer) Close() {
	x.end()
	if x.resp != nil {
		x.resp.Body.Close()
	}
	if !x.freed {
		x.freed = true
		<-x.agent.slots
		if x.buf != nil {
			buffers.Put(x.buf)
			x.buf, x.first = nil, nil
		}
	}
}

func (x *answer) end() {
	x.timer.Stop()
	x.stop(context.Canceled)
}

// errLate ends a request that the agent does not answer in time.
var errLate = p2p.NewFault(http.StatusGatewayTimeout, "the agent does not answer in time")

// awayError is the error of an agent that is not there, or breaks off.
type awayError struct{ fault *p2p.Fault }

// Error returns what is the matter.
func (e *awayError) Error() string { return e.fault.Error() }

// Unwrap returns it as others are told it.
func (e *awayError) Unwrap() error { return e.fault }

// unreached returns the failure of a request that has no answer, or a part of one: what has ended its context, or that
// the agent is gone.
func unreached(ctx context.Context, err error) error {
	switch why := context.Cause(ctx); {
	case errors.Is(why, context.DeadlineExceeded):
		return errLate
	case why != nil:
		return p2p.FaultOf(why)
	}
	f := p2p.NewFault(http.StatusBadGateway, "the agent can't be reached, or has broken off")
	f.Err.Cause = err
	return &awayError{f}
}

// refusal is an answer of the agent that is no success.
type refusal struct {
	status int
	fault  *p2p.Fault
}

// Error returns the status.
func (r *refusal) Error() string { return r.fault.Error() }

// Unwrap returns it as others are told it.
func (r *refusal) Unwrap() error { return r.fault }

// refusalOf returns the refusal that an answer is, with the beginning of what it says.
func refusalOf(resp *http.Response, body []byte) error {
	if resp.StatusCode < 400 {
		return &refusal{resp.StatusCode, p2p.NewFault(http.StatusBadGateway, "the agent answered %d, which leads elsewhere", resp.StatusCode)}
	}
	text := fmt.Sprintf("the agent answered %d", resp.StatusCode)
	if said := strings.TrimSpace(string(body)); said != "" && utf8.ValidString(said) {
		text += ": " + said
	}
	return &refusal{resp.StatusCode, p2p.NewFault(p2p.Number(resp.StatusCode), "%s", text)}
}
