package ws

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/wire"
)

// calls are those whose answers a connection waits for, each on a goroutine of its own: for cards, of tools, and handoffs.
type calls struct {
	ctx  context.Context // ends with the connection
	stop context.CancelFunc
	work sync.WaitGroup
	open map[string]*openCall // by the ids of their frames; the connection's mu guards it
}

// openCall is one of them.
type openCall struct {
	carrier.Call
	id     string // of its frame
	do     caller
	ctx    context.Context // ends with the connection, or by cancel
	cancel context.CancelCauseFunc
}

// caller makes a call, and tells all that comes of it but the last frame, which it returns. The error is one of which it is not known that it is the answer.
type caller func(*verbs, *openCall) (*wire.Frame, error)

// errCancelled is what is told of a call that its caller has given up.
var errCancelled = agora.Errorf(agora.StreamAborted, "the call was cancelled")

// cancelled reports whether the caller has given up the call.
func (q *openCall) cancelled() bool { return errors.Is(context.Cause(q.ctx), carrier.ErrGivenUp) }

// maxWithin is the longest that a call may take: more is no deadline at all.
const maxWithin = 365 * 24 * time.Hour

// callOf is the call that a frame of a session asks for. Its name is the session's and the frame's: sent again on the session's next connection it is the same call.
func callOf(s *edge.Session, f *wire.Frame) carrier.Call {
	return carrier.Call{
		Actor: s.Actor(), As: s.Agent(), To: agora.Agent{ID: agora.AgentID(f.To)}, Name: "ws/" + s.ID() + "/" + f.ID, Trace: f.Traceparent,
		Within: time.Duration(min(f.DeadlineMS, maxWithin.Milliseconds())) * time.Millisecond,
	}
}

// call makes a call under the id of its frame, if the limits allow. What becomes of it is told later.
func (v *verbs) call(id string, as carrier.Call, do caller) error {
	q := &openCall{Call: as, id: id, do: do}
	limit := v.door.node.calls()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.calls == nil {
		t := &calls{open: map[string]*openCall{}}
		t.ctx, t.stop = context.WithCancel(context.Background())
		v.calls = t
	}
	t := v.calls
	if v.life != opened {
		t.stop()
	}
	if t.open[id] != nil {
		return agora.Errorf(agora.InvalidRequest, "a call with this id is open")
	}
	if len(t.open) >= limit {
		return &agora.Error{Code: agora.RateLimited, Message: "too many calls are open", RetryAfter: time.Second}
	}
	q.ctx, q.cancel = context.WithCancelCause(t.ctx)
	t.open[id] = q
	t.work.Go(func() { v.runCall(q) })
	return nil
}

// runCall makes a call and tells what comes of it, until the connection is over: its caller may ask again on another one.
func (v *verbs) runCall(q *openCall) {
	defer q.cancel(nil)
	last, err := q.do(v, q)
	v.closeCall(q.id) // before its caller hears the last of it
	switch {
	case err == nil:
		v.out.queueInTurn(last)
	case q.cancelled():
		v.refuse(&wire.Frame{ID: q.id, To: string(q.To.ID)}, errCancelled)
	case q.ctx.Err() == nil:
		v.refuse(&wire.Frame{ID: q.id, To: string(q.To.ID)}, err)
	}
}

// closeCall counts a call out.
func (v *verbs) closeCall(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.calls.open, id)
}

// cancelCall gives up the open call that a cancel names. It returns false where it names none.
func (v *verbs) cancelCall(f *wire.Frame) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.calls == nil {
		return false
	}
	q := v.calls.open[f.StreamID]
	if q == nil || string(q.To.ID) != f.To {
		return false
	}
	q.cancel(carrier.ErrGivenUp)
	return true
}

// endCalls ends all calls, and returns when none is open. No verb runs.
func (v *verbs) endCalls() {
	v.mu.Lock()
	t := v.calls
	v.mu.Unlock()
	if t != nil {
		t.stop()
		t.work.Wait()
	}
}
