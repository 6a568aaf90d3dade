package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

// sender sends what the application has to say, and waits for what becomes of it.
type sender struct {
	out     *outbox
	asks    *correlator
	life    *lifetime
	waiters *waiters
	log     *inlog                       // that of the mailbox: answers to calls count there
	trace   func(context.Context) string // of Config.Traceparent; nil for none
}

// send adds a frame and waits for its receipt.
func (s *sender) send(ctx context.Context, f *frame) error {
	f.await()
	if err := s.out.add(ctx, f); err != nil {
		return err
	}
	return s.wait(ctx, f)
}

// wait waits for a frame's receipt.
func (s *sender) wait(ctx context.Context, f *frame) error {
	defer s.waiters.expect()()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		s.out.withdraw(f, ctx.Err())
		return ctx.Err()
	}
}

// call asks the edge and returns its answer, from whichever edge it comes.
func (s *sender) call(ctx context.Context, q *wire.Frame) (*wire.Frame, error) {
	q.ID = newID("q")
	return s.ask(ctx, &frame{other: q, id: q.ID})
}

// ask sends a frame with an id and returns its answer.
func (s *sender) ask(ctx context.Context, f *frame) (*wire.Frame, error) {
	answer, forget := s.asks.ask(f.id)
	defer forget()
	f.await()
	if err := s.out.add(ctx, f); err != nil {
		return nil, err
	}
	defer s.waiters.expect()()
	for done := f.done; ; {
		select {
		case a := <-answer:
			return a, nil
		case <-done:
			if f.err != nil {
				return nil, f.err
			}
			done = nil // stored; what it became is told besides
		case <-ctx.Done():
			s.out.withdraw(f, ctx.Err())
			return nil, ctx.Err()
		case <-s.life.done:
			return nil, s.life.why()
		}
	}
}

// begin sends a call. It returns once that is on its way, and blocks only while too much is.
func (s *sender) begin(ctx context.Context, q *wire.Frame, size json.RawMessage) (*Call, error) {
	q.ID = newID("t")
	if end, ok := ctx.Deadline(); ok {
		q.DeadlineMS = max(1, time.Until(end).Milliseconds())
	}
	if s.trace != nil {
		q.Traceparent = s.trace(ctx)
	}
	t := &Call{
		id: q.ID, to: q.To, f: &frame{other: q, id: q.ID, body: size}, life: s.life, waiters: s.waiters, log: s.log,
		ready: make(chan struct{}, 1), read: time.Now(),
	}
	t.quit = func() { s.quit(t) }
	t.f.await()
	s.asks.open(ctx, t)
	if err := s.out.add(ctx, t.f); err != nil {
		t.fail(err)
		return nil, err
	}
	return t, nil
}

// quit waits for the answer to a call no longer; an agent that has not given all of it is told.
func (s *sender) quit(t *Call) {
	s.asks.over(t)
	if s.out.abandon(t.id, &frame{other: &wire.Frame{Type: "cancel", To: t.to, StreamID: t.id}, once: true}) {
		s.asks.giveUp(requestKey{t.to, t.id})
	}
}

// callTool calls a tool; q says whose and which.
func (s *sender) callTool(ctx context.Context, q *wire.Frame, arguments any) (*Call, error) {
	err := ctx.Err()
	if err != nil {
		return nil, err
	}
	if q.Arguments, err = encode(arguments); err != nil {
		return nil, err
	}
	return s.begin(ctx, q, q.Arguments)
}

// openStream opens a stream by its first frame. ends is called when it fails, with the outbox's lock held; it may be
// nil.
func (s *sender) openStream(ctx context.Context, f *frame, ends func()) (*Stream, error) {
	st := s.newStream(ctx, f, ends)
	f.deadline, _ = ctx.Deadline()
	if err := s.send(ctx, f); err != nil {
		if ctx.Err() != nil {
			st.cancel(err)
		}
		return nil, err
	}
	st.watch()
	return st, nil
}

// newStream returns the stream that a frame is to begin.
func (s *sender) newStream(ctx context.Context, f *frame, ends func()) *Stream {
	name := f.stream
	if f.to.space != "" {
		name = f.id // until the edge has made one
	}
	f.st = &outStream{key: outKey{f.to, name}, start: f, ends: ends}
	return &Stream{sender: s, ctx: ctx, out: f.st}
}

// question encodes a question and begins to wait for its reply.
func (s *sender) question(to, stream string, payload any) (*request, json.RawMessage, error) {
	body, err := encode(payload)
	if err != nil {
		return nil, nil, err
	}
	body, err = withRequestID(body, rawjson.AppendString(nil, newID("r")))
	if err != nil {
		return nil, nil, err
	}
	r := &request{id: (&Message{Payload: body}).RequestID(), stream: stream, to: to}
	r.reply, r.failed = make(chan *Message, 1), make(chan error, 1)
	if err := s.asks.await(r); err != nil {
		return nil, nil, err
	}
	return r, body, nil
}

// awaitReply waits for the reply to a question, whose frame may still fail.
func (s *sender) awaitReply(ctx context.Context, r *request, f *frame) (*Message, error) {
	defer s.waiters.expect()()
	stored := f.done
	for {
		select {
		case m := <-r.reply:
			return m.bound(ctx), nil
		case err := <-r.failed:
			return nil, err
		case <-stored:
			if f.err != nil {
				s.asks.abandon(r, true)
				return nil, f.err
			}
			stored = nil
		case <-ctx.Done():
			sent := s.out.withdraw(f, ctx.Err())
			s.asks.abandon(r, true)
			if sent && errors.Is(ctx.Err(), context.Canceled) { // of a deadline that has passed both ends hear
				s.out.force(&frame{typ: "cancel", to: f.to, request: r.id})
			}
			return nil, ctx.Err()
		case <-s.life.done:
			return nil, s.life.why()
		}
	}
}

// newID returns an id that nobody else makes.
func newID(prefix string) string { return prefix + "-" + rand.Text() }
