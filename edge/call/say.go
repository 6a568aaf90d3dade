package call

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// Say stores the next part of a request that is a stream ([Request.Streams]): a Chunk, or its End, which may have a
// body. Of m it takes Part, Body and Media, and Dialect and Head of Meta; the body is not to be changed any more. It
// returns when the part is stored. It waits for that while the mailbox of who is asked is nearly full, while the log
// can't be reached, and while the edge can't reach presence, up to [Request.Patience]; and as long as the caller's rate
// asks for. One goroutine at a time calls it, which may be another than calls Next.
//
// Errors: INVALID_REQUEST for a part that can't follow; RATE_LIMITED and UNAVAILABLE when the patience is over. That of
// Next, as soon as Next has come upon it: so it is STREAM_ABORTED where the agent has cancelled the stream, or given up
// its answer. An answer that is whole ends nothing here. What is refused may be said again: it is STREAM_ABORTED then
// where the stream can't go on, as nobody knows whether the part was stored, which may be so behind UNAVAILABLE and
// ctx's own error, or as it never can be. Close tells the agent so.
func (a *Answer) Say(ctx context.Context, m agora.Message) error {
	s := a.stream
	if s == nil || m.Part != agora.Chunk && m.Part != agora.End {
		return agora.Errorf(agora.InvalidRequest, "the request is no stream of which this could be a part")
	}
	if err := s.over(); err != nil {
		return err
	}
	if err := a.ready(ctx, &m); err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	err := s.put(soon, agora.Message{
		Kind: agora.Request, Part: m.Part, Stream: s.name, Indexed: true, Index: s.next, Body: m.Body, Media: m.Media,
		Meta: agora.Meta{Dialect: m.Meta.Dialect, Head: m.Meta.Head},
	})
	if err != nil {
		return a.unsaidPart(ctx, err)
	}
	s.next++
	a.r.cfg.Wrote(a.callee())
	if m.Part == agora.End {
		a.streamed()
	}
	return nil
}

// unsaidPart ends the stream behind a part that is not stored, as far as anybody knows.
func (a *Answer) unsaidPart(ctx context.Context, err error) error {
	a.stream.fail(errHole)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a.broken() != nil:
		return a.broken()
	case errors.Is(err, context.DeadlineExceeded):
		return errAway
	}
	return err
}

// ready waits until the next part may be stored.
func (a *Answer) ready(ctx context.Context, m *agora.Message) error {
	if a.pace != nil && !pause.For(ctx, a.pace(len(m.Body))) {
		return ctx.Err()
	}
	full, slow := a.r.cfg.Pressed(a.call.From, a.callee())
	if slow && m.Part == agora.Chunk && !pause.For(ctx, slowed) {
		return ctx.Err()
	}
	for end := time.Now().Add(a.patience); ; full, _ = a.r.cfg.Pressed(a.call.From, a.callee()) {
		if err := cmp.Or(a.broken(), ctx.Err()); err != nil {
			return err
		}
		var why error
		if _, valid := a.r.cfg.Valid(); !valid {
			why = errCutOff
		} else if full && m.Part == agora.Chunk { // the end lets go of something
			why = errFull
		}
		if why == nil || !time.Now().Before(end) {
			return why
		}
		if !pause.For(ctx, lookAgain) {
			return ctx.Err()
		}
	}
}

// broken returns why the call continues no more; nil while it does, though its answer be whole.
func (a *Answer) broken() error {
	now := a.now()
	switch {
	case now.err != nil && !errors.Is(now.err, io.EOF):
		return now.err
	case now.closed:
		return errClosed
	case !a.call.Deadline.IsZero() && !a.r.cfg.Broker.Now().Before(a.call.Deadline):
		a.fail(errLate)
		return errLate
	}
	return nil
}

// streamed notes that the request's stream has ended, here and, behind, in presence.
func (a *Answer) streamed() {
	a.stream.done()
	a.r.background(func() {
		ctx, cancel := context.WithTimeout(a.r.ctx, askTime)
		defer cancel()
		if err := a.r.cfg.Presence.Calls.Streamed(ctx, a.call); err != nil && a.r.ctx.Err() == nil {
			a.r.cfg.Log.Debug("the end of a request's stream was not noted, which the log shows", "err", err)
		}
	})
}

const (
	slowed    = 200 * time.Millisecond // between two parts to who does not keep up with this caller's streams
	lookAgain = 50 * time.Millisecond  // before it is looked again whether a part may be stored
)

var (
	errHole   = agora.Errorf(agora.StreamAborted, "a part of the request's stream could not be stored: nothing may follow it")
	errClosed = agora.Errorf(agora.StreamAborted, "the call is over")
	errFull   = &agora.Error{Code: agora.RateLimited, Message: "the mailbox of the addressee is nearly full", RetryAfter: time.Second}
	errAway   = &agora.Error{Code: agora.Unavailable, Message: "the message log can't be reached now", RetryAfter: time.Second}
	errCutOff = &agora.Error{Code: agora.Unavailable, Message: "the edge has lost touch with the cluster", RetryAfter: time.Second}

	errCancelled = agora.Errorf(agora.StreamAborted, "the agent has cancelled the request's stream")
)
