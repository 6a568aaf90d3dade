package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

// Call is a tool of another agent that was called, or a request that was handed off to it: what is answered comes by Chunks or Next while the agent still
// works, and by Result behind that. It must be read to its end, or closed: what waits of it counts against
// Config.MaxBuffered, and after Config.Stall a call that is not read and holds up others fails with STREAM_ABORTED.
// Its methods are for one goroutine, but for Close.
type Call struct {
	c    *Client
	id   string
	to   string
	stop func() bool // ends the watch over the call's context; the client's lock guards it

	f     *frame
	ready chan struct{} // holds one token while there is a piece, or the end

	// The mailbox's lock guards these.
	pieces []Answer
	index  uint32 // of the piece that is to come
	bytes  int
	read   time.Time // when it was read last
	result Answer
	err    error // io.EOF or why it ended; nil while it is open
}

// Answer is what an agent answers, or a piece of it.
type Answer struct {
	Body   json.RawMessage // as it was said, byte for byte; nil for none
	Media  string          // media type of what Body is a string of base64 of; empty where it is JSON or text
	Item   uint64          // of a piece that is a part of larger bytes: which of them, from 1; 0 where it is whole
	Status int             // of the result of a handoff: its code, as of HTTP; else 0
}

// Bytes returns what Body stands for: the bytes that base64 is of, the text of a string, any other JSON as it is. An error where base64 is none.
func (a Answer) Bytes() ([]byte, error) {
	switch {
	case len(a.Body) == 0 || a.Body[0] != '"':
		return a.Body, nil
	case a.Media != "":
		return base64.StdEncoding.DecodeString(rawjson.Unquote(a.Body))
	}
	return []byte(rawjson.Unquote(a.Body)), nil
}

// AnswerError is the error that an agent has answered with.
type AnswerError struct {
	Err    *agora.Error
	Status int    // of a handoff: its code, as of HTTP; else 0
	Path   string // where in what was asked; may be empty
}

// Error returns what the agent said.
func (e *AnswerError) Error() string { return e.Err.Error() }

// Unwrap returns the error with its code.
func (e *AnswerError) Unwrap() error { return e.Err }

// begin sends a call. It returns once that is on its way, and blocks only while too much is.
func (c *Client) begin(ctx context.Context, q *wire.Frame, size json.RawMessage) (*Call, error) {
	q.ID = newID("t")
	if end, ok := ctx.Deadline(); ok {
		q.DeadlineMS = max(1, time.Until(end).Milliseconds())
	}
	if c.cfg.Traceparent != nil {
		q.Traceparent = c.cfg.Traceparent(ctx)
	}
	t := &Call{c: c, id: q.ID, to: q.To, ready: make(chan struct{}, 1), read: time.Now(), f: &frame{other: q, id: q.ID, body: size}}
	t.f.await()
	c.mu.Lock()
	c.open[t.id] = t
	t.stop = context.AfterFunc(ctx, func() { t.fail(context.Cause(ctx)) })
	c.mu.Unlock()
	if err := c.out.add(ctx, t.f); err != nil {
		t.fail(err)
		return nil, err
	}
	return t, nil
}

// Agent returns whom the call is to.
func (t *Call) Agent() string { return t.to }

// Next returns the next piece of the answer. It blocks while there is none, and returns io.EOF behind the last one: then
// Result has what comes behind them.
func (t *Call) Next(ctx context.Context) (Answer, error) {
	defer t.c.mail.expect()()
	for done := t.f.done; ; {
		if a, ok, err := t.take(); ok || err != nil {
			return a, err
		}
		select {
		case <-t.ready:
		case <-done:
			if t.f.err != nil {
				t.fail(t.f.err)
			}
			done = nil // its end has come
		case <-t.c.done:
			t.fail(t.c.Err())
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
	}
}

// Chunks yields the pieces of the answer as they come; the last pair has the error, if it ended with one.
func (t *Call) Chunks() iter.Seq2[Answer, error] {
	return func(yield func(Answer, error) bool) {
		for {
			a, err := t.Next(context.Background())
			if ended(err) || !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// Result waits for the end of the answer and returns what stands there: the whole answer, where it did not come in pieces.
// Pieces that were not read are passed over.
func (t *Call) Result(ctx context.Context) (Answer, error) {
	for {
		switch _, err := t.Next(ctx); {
		case ended(err):
			t.c.mail.mu.Lock()
			defer t.c.mail.mu.Unlock()
			return t.result, nil
		case err != nil:
			return Answer{}, err
		}
	}
}

// Close waits for the answer no longer; an agent that has not given all of it is told. It never blocks and returns nil.
func (t *Call) Close() error {
	t.fail(ErrCancelled)
	return nil
}

func (t *Call) take() (a Answer, ok bool, err error) {
	m := t.c.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	t.read = time.Now()
	if len(t.pieces) == 0 {
		return a, false, t.err
	}
	a = t.pieces[0]
	t.pieces = t.pieces[1:]
	t.free(len(a.Body) + frameCost)
	return a, true, nil
}

// free counts out what waits no more. It is called with the mailbox's lock held.
func (t *Call) free(bytes int) {
	t.bytes -= bytes
	t.c.mail.bytes -= bytes
	t.c.mail.freed()
}

// fail ends the call here. One that has ended stays as it is, but for pieces that nobody has read.
func (t *Call) fail(err error) {
	t.c.mail.mu.Lock()
	t.end(err)
	t.pieces = nil
	t.free(t.bytes)
	t.c.mail.mu.Unlock()
	t.forget()
	if t.c.out.abandon(t.id, &frame{other: &wire.Frame{Type: "cancel", To: t.to, StreamID: t.id}, once: true}) {
		t.c.mu.Lock()
		t.c.gone.add(requestKey{t.to, t.id})
		t.c.mu.Unlock()
	}
}

// end is called with the mailbox's lock held; forget must follow.
func (t *Call) end(err error) {
	if t.err == nil {
		t.err = err
	}
	signal(t.ready)
}

// forget takes a call that has ended off those that are open.
func (t *Call) forget() {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.stop()
	delete(t.c.open, t.id)
}

// answeredCall takes in what is answered to a call.
func (c *Client) answeredCall(f *wire.Frame) {
	c.mu.Lock()
	t := c.open[f.ID]
	c.mu.Unlock()
	if t != nil && t.deliver(f) {
		t.forget()
		c.out.answered(t.id, nil)
	}
}

// deliver takes in a piece, or the end. It reports whether that was the end. Behind what the mailbox has dropped nothing is taken in: the call is
// sent again on the next connection, and all its pieces come again.
func (t *Call) deliver(f *wire.Frame) bool {
	m := t.c.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shed || t.err != nil {
		return false
	}
	a := Answer{slices.Clone(f.Body), f.Media, f.Item, f.StatusCode}
	if f.Type == "tool.result" || f.Type == "handoff.result" {
		t.result = a
		if f.Error != nil {
			t.end(&AnswerError{agora.Errorf(agora.Code(f.Error.Code), "%s", f.Error.Message), f.StatusCode, f.Error.Path})
		} else {
			t.end(io.EOF)
		}
		return true
	}
	if f.Index != t.index { // one that came before
		return false
	}
	t.index++
	t.pieces = append(t.pieces, a)
	t.free(-len(a.Body) - frameCost)
	signal(t.ready)
	return false
}

// stalledCall returns the call with most bytes among those that have not been read for too long. It is called with the mailbox's lock held.
func (c *Client) stalledCall(now time.Time) (worst *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.open {
		if len(t.pieces) > 0 && now.Sub(t.read) >= c.cfg.Stall && (worst == nil || t.bytes > worst.bytes) {
			worst = t
		}
	}
	return worst
}
