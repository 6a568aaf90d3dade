package iat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/agora-relay/agora"
)

// answer is what answers a request: chunks, and then a response. Where a connection breaks, the request is made again
// under the same id, which has it answered again from the first chunk. One goroutine reads it.
type answer struct {
	c      *Client
	ctx    context.Context
	stop   context.CancelFunc
	body   []byte           // the request, the same each time
	until  time.Time        // when it can't be made again under its id, where more is nil
	more   func(error) bool // says after which errors of an edge, besides those that pass, it is made again; may be nil
	trier  trier
	given  int // chunks that were returned
	events *events
	whole  io.ReadCloser // the response alone, instead of events
	seen   int           // chunks that have come by this connection
	since  time.Time     // when it was made
	over   error         // what next returns from now on; nil while there is more
}

// maxWait is how long an edge waits for an answer at most.
const maxWait = 10 * time.Minute

// ask makes a request, and returns its answer once an edge has begun with that. more says after which errors of an
// edge, besides those that pass, the request is made again, however late; it may be nil. The caller owes the answer a
// call of close.
func (c *Client) ask(ctx context.Context, e *Envelope, more func(error) bool) (*answer, error) {
	if e.Header.Type == "" {
		e.Header.Type = Request
	}
	end, ends := ctx.Deadline()
	if ends && e.Metadata.DeadlineMS == 0 {
		e.Metadata.DeadlineMS = max(time.Until(end).Milliseconds(), 1)
	}
	body, err := c.written(e)
	if err != nil {
		return nil, err
	}
	wait := maxWait
	if d := e.deadline(); d > 0 {
		wait = min(d, maxWait)
	}
	a := &answer{c: c, body: body, until: time.Now().Add(wait), more: more, trier: trier{c: c}}
	a.ctx, a.stop = c.within(ctx)
	if err := a.connect(); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// connect makes the request until an edge begins to answer it.
func (a *answer) connect() error {
	r := httpRequest{method: http.MethodPost, path: "/a2a", body: a.body, header: http.Header{"Accept": {"text/event-stream"}}}
	for {
		resp, end, err := a.c.attempt(a.ctx, r)
		if err == nil {
			a.since, a.seen = time.Now(), 0
			if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media == "text/event-stream" {
				a.events = newEvents(resp.Body, a.c.silence(), end)
			} else {
				a.whole = resp.Body
			}
			return nil
		}
		if err := a.again(err); err != nil {
			return err
		}
	}
}

// silence is how long a connection may be silent before it is taken for dead: two intervals between signs of life, less
// than a session lasts whose edge is gone, and three where they are short.
func (c *Client) silence() time.Duration {
	return max(2*c.cfg.KeepAlive, min(3*c.cfg.KeepAlive, 15*time.Second))
}

// again blocks until the request is to be made again, and returns err where it is not.
func (a *answer) again(err error) error {
	a.disconnect()
	if e, ok := errors.AsType[*Error](err); ok && !a.trier.passes(e) && (a.more == nil || !a.more(err)) {
		return err
	} else if ok && !a.trier.passes(e) {
		err = &Error{Code: agora.Unavailable, Message: e.Message, RetryAfter: a.c.cfg.Backoff.Min, Cause: e}
		a.trier.worked()
	}
	if a.more == nil && time.Now().After(a.until) {
		return &Error{Code: agora.Timeout, Message: "time is up for the request", Cause: err}
	}
	return a.trier.again(a.ctx, err)
}

// next returns the next chunk, or the response, and io.EOF after that. An error that the response says is returned as
// one. Errors stay.
func (a *answer) next() (*Envelope, error) {
	if a.over != nil {
		return nil, a.over
	}
	for {
		e, err := a.read()
		if err == nil && e.Header.Type == ChunkType {
			if a.seen++; a.seen <= a.given {
				continue
			}
			a.given = a.seen
			a.trier.worked()
			return e, nil
		}
		if err == nil {
			a.over = io.EOF
			return e, nil
		}
		if e, ok := errors.AsType[*Error](err); ok && e.From != "" && e.From != cluster {
			a.over = err
			return nil, err
		}
		if err := a.resume(err); err != nil {
			a.over = err
			return nil, err
		}
	}
}

// resume makes the request again after a connection has ended without a response.
func (a *answer) resume(err error) error {
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	if time.Since(a.since) > a.c.cfg.KeepAlive {
		a.trier.worked()
	}
	if err := a.again(err); err != nil {
		return err
	}
	return a.connect()
}

// read reads an envelope: a chunk or a response. An error that it says is returned as one.
func (a *answer) read() (*Envelope, error) {
	for {
		data, err := a.data()
		if err != nil {
			return nil, broke(err)
		}
		e := new(Envelope)
		if err := json.Unmarshal(data, e); err != nil {
			return nil, broke(err)
		}
		if f := faultOf(e); f != nil {
			return nil, f
		}
		if e.Header.Type == Response || e.Header.Type == ChunkType {
			return e, nil
		}
	}
}

// data returns the next envelope as it was written.
func (a *answer) data() ([]byte, error) {
	if a.events != nil {
		v, err := a.events.next()
		return v.data, err
	}
	b, err := io.ReadAll(io.LimitReader(a.whole, maxEvent))
	if err == nil && len(b) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func (a *answer) disconnect() {
	if a.events != nil {
		a.events.close()
	}
	if a.whole != nil {
		a.whole.Close() // whose error says nothing: the request is over
	}
	a.events, a.whole = nil, nil
}

// close ends the request. It may be called more than once.
func (a *answer) close() {
	a.disconnect()
	a.stop()
	if a.over == nil {
		a.over = ErrClosed
	}
}
