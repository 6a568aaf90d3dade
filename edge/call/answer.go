package call

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// Answer is what comes back of a call: a whole message, or the parts of a stream. One goroutine at a time calls Next;
// Close may be called from any.
type Answer struct {
	r        *Registry
	id       string          // among those of the Registry
	owner    admission.Owner // as whose it counts
	call     presence.Call
	inbox    atomic.Pointer[broker.Inbox] // nil before it is listened to
	wake     chan struct{}
	stream   *stream       // that the request is; nil where it is whole
	patience time.Duration // see Request, as the next
	pace     func(int) time.Duration
	timer    atomic.Pointer[time.Timer] // of the deadline; Next makes it
	progress
	reading
}

func newAnswer(r *Registry, q Request) *Answer {
	m := &q.Message
	c := presence.Call{
		Tenant: m.To.Tenant, Box: q.Box, From: m.From, To: m.To.Agent, Request: m.ID, Deadline: m.Meta.Deadline, Named: q.Name != "", Streams: q.Streams,
	}
	if c.Box == "" || c.Named {
		c.Box = NewBox(c.Tenant, c.From, q.Name)
	}
	if c.Request == "" {
		c.Request = c.Box
	}
	if c.Named {
		c.Digest = digest(string(c.To), m.ID, m.Media, m.Meta.Dialect, string(m.Body))
	}
	return &Answer{
		r: r, id: strconv.FormatUint(r.next.Add(1), 36), call: c, wake: make(chan struct{}, 1), progress: progress{ended: make(chan struct{})},
		owner:    admission.Owner{Tenant: m.To.Tenant, Principal: q.Principal, Agent: m.From},
		patience: cmp.Or(q.Patience, patience), pace: q.Pace,
	}
}

// patience is how long Say waits for what keeps a part from being stored.
const patience = 10 * time.Second

// Box returns the call's id.
func (a *Answer) Box() string { return a.call.Box }

// RequestID returns the name by which the one who is asked knows the request.
func (a *Answer) RequestID() string { return a.call.Request }

func (a *Answer) address() agora.Address { return agora.ToBox(a.call.Tenant, a.call.Box, a.call.From) }

func (a *Answer) callee() agora.Address { return agora.ToAgent(a.call.Tenant, a.call.To) }

// woken is called by the inbox and must not block.
func (a *Answer) woken() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Next returns the next part of the answer: a whole message or the start of a stream, then its chunks, then its end;
// after the last io.EOF. It blocks while there is none. The error of a call that was not answered is an *agora.Error:
// STREAM_ABORTED when who was asked has gone or given up, or has cancelled a request that is a stream, TIMEOUT when the
// deadline has passed, UNAVAILABLE when parts were lost; it stays. When ctx ends Next returns its error, and may be
// called again; one that ends by [ErrGivenUp] says that the call is not made again. The body is shared and not to be
// changed.
func (a *Answer) Next(ctx context.Context) (agora.Message, error) {
	if a.done() && !a.call.Named { // where it may not be asked for again
		a.r.forget(a.address(), a.at)
	}
	for {
		if err := a.over(); err != nil {
			return agora.Message{}, err
		}
		if a.isGivenUp(ctx) {
			return agora.Message{}, ctx.Err()
		}
		for len(a.msgs) > 0 && a.r.cfg.Delivers() == nil {
			m := a.next()
			if a.take(&m) {
				a.hand(&m)
				return m, nil
			}
			if a.over() != nil {
				break
			}
		}
		if a.over() != nil {
			continue
		}
		if err := a.fill(ctx); err != nil {
			a.isGivenUp(ctx)
			return agora.Message{}, err
		}
	}
}

// Buffered reports whether Next has something at hand, which may turn out to be nothing for the caller. It is for the
// goroutine that calls Next.
func (a *Answer) Buffered() bool { return len(a.msgs) > 0 }

// fill waits until something was read.
func (a *Answer) fill(ctx context.Context) error {
	if len(a.msgs) > 0 { // the edge may not hand it on now
		return a.rest(ctx)
	}
	inbox := a.inbox.Load()
	msgs, more := inbox.Take(pullBytes)
	if more {
		var err error
		if msgs, err = inbox.Next(ctx, pullBytes); err != nil {
			return a.rest(ctx)
		}
	}
	if a.keep(msgs); len(msgs) > 0 {
		return nil
	}
	if a.state == presence.CallAnswered {
		a.fail(agora.Errorf(agora.Unavailable, "the answer of the call of this name is not kept any more"))
		return nil
	}
	select {
	case <-a.wake:
	case <-a.deadline():
		a.fail(errLate)
	case <-a.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// rest waits a moment before what failed is tried again.
func (a *Answer) rest(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	select {
	case <-a.deadline():
		a.fail(errLate)
	case <-a.ended:
	case <-soon.Done():
	}
	return ctx.Err()
}

const restTime = 100 * time.Millisecond

// deadline returns what says that the deadline has passed; nil where there is none.
func (a *Answer) deadline() <-chan time.Time {
	if a.call.Deadline.IsZero() {
		return nil
	}
	if a.timer.Load() == nil {
		a.timer.Store(time.NewTimer(max(0, a.call.Deadline.Sub(a.r.cfg.Broker.Now()))))
	}
	return a.timer.Load().C
}

// held returns the bytes kept for the caller.
func (a *Answer) held() int64 {
	inbox := a.inbox.Load()
	if inbox == nil {
		return 0
	}
	n := a.kept.Load() + int64(inbox.Held())
	if a.stream != nil {
		n += a.stream.held.Load()
	}
	return n
}

// take decides what becomes of what stands in the box: only who was asked answers, and only once.
func (a *Answer) take(m *agora.Message) bool {
	switch {
	case m.Kind == agora.Gap:
		a.fail(agora.Errorf(agora.Unavailable, "parts of the answer were lost before they were read"))
		return false
	case m.Kind == agora.Control && m.Part == agora.Abort && m.From == "":
		a.lose(aborted(m), true)
		return false
	case a.cancelled(m):
		a.fail(refusedStream(m))
		return false
	case m.Kind != agora.Reply || guard.First && m.From != a.call.To:
		return false
	case !a.began:
		return a.begin(m)
	case !guard.First:
	case m.Part == agora.Whole || m.Stream != a.first.Stream || m.Session != a.first.Session:
		return false // another one, to nobody
	}
	switch m.Part {
	case agora.End:
		a.end(io.EOF)
	case agora.Cancel:
		a.end(agora.Errorf(agora.StreamAborted, "the agent has cancelled its answer"))
		return false
	case agora.Abort:
		a.end(aborted(m))
		return false
	}
	return m.Part == agora.Chunk || m.Part == agora.End
}

// cancelled reports whether the agent says that it wants no more of the request's stream.
func (a *Answer) cancelled(m *agora.Message) bool {
	return a.stream != nil && m.Kind == agora.Control && m.Part == agora.Cancel && m.From == a.call.To && m.Stream == a.stream.name
}

// begin takes the first part.
func (a *Answer) begin(m *agora.Message) bool {
	switch m.Part {
	case agora.Whole:
		a.end(io.EOF)
	case agora.Start:
	case agora.Chunk, agora.End: // what it began with has been dropped
		a.fail(agora.Errorf(agora.Unavailable, "the beginning of the answer is not kept any more"))
		return false
	default:
		a.end(aborted(m))
		return false
	}
	a.began, a.first = true, *m
	a.first.Body = nil
	return true
}

// aborted is the error that stands in an abort.
func aborted(m *agora.Message) *agora.Error {
	switch m.AbortBody().Code {
	case agora.Timeout:
		return agora.Errorf(agora.Timeout, "the answer's deadline has passed")
	case agora.MessageTooLarge:
		return errUndelivered
	}
	return agora.Errorf(agora.StreamAborted, "the agent that was asked gave up before its answer was whole")
}

// errUndelivered is the error of a call whose request was not given to who was asked.
var errUndelivered = agora.Errorf(agora.MessageTooLarge, "the request is larger than a frame that the agent takes")

// refusedStream is the error of a call whose agent wants no more of the request's stream.
func refusedStream(m *agora.Message) *agora.Error {
	if m.AbortBody().Code == agora.MessageTooLarge {
		return errUndelivered
	}
	return errCancelled
}

// Close says that the caller waits no more. Where the answer has not come to its end, who was asked learns that nobody
// waits, once: at once, or of a call with a name that was not given up when its caller has not made it again in its
// grace. A request's stream without an end is aborted. It does not block.
func (a *Answer) Close() {
	was, first := a.close()
	if !first {
		return
	}
	inbox := a.inbox.Load()
	if inbox != nil {
		inbox.Close()
	}
	if t := a.timer.Load(); t != nil {
		t.Stop()
	}
	a.r.exit(a)
	switch {
	case was.whole && errors.Is(was.err, io.EOF):
		a.r.count.Answered.Add(1)
	case was.err != nil:
		a.r.count.Failed.Add(1)
	case was.request != requestUnknown:
		a.r.count.GivenUp.Add(1)
	}
	switch {
	case was.request != requestUnknown:
		a.r.leave(a, was, codeOf(was))
	case a.stream != nil:
		a.stream.lane.Close()
	}
}

// codeOf is what who was asked learns of a call that nobody waits for any more; nothing where others have told, or it
// was not asked.
func codeOf(was stage) agora.Code {
	switch {
	case was.request == requestUnsaid, was.giveUp == givenUpTold:
		return ""
	case errors.Is(was.err, errLate):
		return agora.Timeout
	}
	return agora.StreamAborted
}
