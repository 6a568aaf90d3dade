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
	ctx  context.Context // ends when the connection closes
	stop context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex           // guards the field below
	open map[string]*openCall // by the ids of their frames
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
type caller func(*conn, *openCall) (*wire.Frame, error)

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

// startCall makes a call under the id of its frame, if the limits allow. What becomes of it is told later.
func startCall(c *conn, id string, as carrier.Call, do caller) error {
	t := c.calls.Load()
	if t == nil {
		t = &calls{open: map[string]*openCall{}}
		t.ctx, t.stop = context.WithCancel(context.Background())
		c.calls.Store(t)
	}
	q, err := t.enter(&openCall{Call: as, id: id, do: do}, c.door.node.calls())
	if err != nil {
		return err
	}
	t.work.Go(func() { t.run(c, q) })
	if c.out.Closing() { // meanwhile, perhaps
		t.stop()
	}
	return nil
}

// enter counts a call in, where fewer than so many are open.
func (t *calls) enter(q *openCall, most int) (*openCall, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[q.id] != nil {
		return nil, agora.Errorf(agora.InvalidRequest, "a call with this id is open")
	}
	if len(t.open) >= most {
		return nil, &agora.Error{Code: agora.RateLimited, Message: "too many calls are open", RetryAfter: time.Second}
	}
	q.ctx, q.cancel = context.WithCancelCause(t.ctx)
	t.open[q.id] = q
	return q, nil
}

// run makes a call and tells what comes of it, until the connection is over: its caller may ask again on another one.
func (t *calls) run(c *conn, q *openCall) {
	defer q.cancel(nil)
	last, err := q.do(c, q)
	t.mu.Lock()
	delete(t.open, q.id) // before its caller hears the last of it
	t.mu.Unlock()
	switch {
	case err == nil:
		c.queueInTurn(last)
	case q.cancelled():
		c.refuse(&wire.Frame{ID: q.id, To: string(q.To.ID)}, errCancelled)
	case q.ctx.Err() == nil:
		c.refuse(&wire.Frame{ID: q.id, To: string(q.To.ID)}, err)
	}
}

// cancel gives up the open call that a cancel names. It returns false where it names none.
func (t *calls) cancel(f *wire.Frame) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.open[f.StreamID]
	if q == nil || string(q.To.ID) != f.To {
		return false
	}
	q.cancel(carrier.ErrGivenUp)
	return true
}

// end ends all calls, as nothing can be told of them any more. A nil one has none.
func (t *calls) end() {
	if t != nil {
		t.stop()
	}
}
