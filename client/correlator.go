package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// correlator finds what waits for an answer: a question to the edge, a request to an agent, or a call of a tool.
type correlator struct {
	mu        sync.Mutex                  // guards the fields below
	questions map[string]chan *wire.Frame // to the edge, by id
	calls     map[string]*Call            // by id
	requests  map[string]*request         // by request_id
	abandoned recent[requestKey]          // requests and calls that nobody waits for any more
}

// request is a question to an agent that waits for its reply.
type request struct {
	id     string
	stream string        // of a streamed question; a reply under it is the answer, too
	to     string        // who answers
	reply  chan *Message // takes one
	failed chan error    // takes one
}

// requestKey names a request or a call that was given up: who was asked, and its request_id or id.
type requestKey struct{ to, id string }

func newCorrelator() *correlator {
	return &correlator{questions: map[string]chan *wire.Frame{}, calls: map[string]*Call{}, requests: map[string]*request{}}
}

// ask begins to wait for the answer to a question with an id. The function that it returns ends that.
func (c *correlator) ask(id string) (answer chan *wire.Frame, forget func()) {
	answer = make(chan *wire.Frame, 1)
	c.mu.Lock()
	c.questions[id] = answer
	c.mu.Unlock()
	return answer, func() {
		c.mu.Lock()
		delete(c.questions, id)
		c.mu.Unlock()
	}
}

// asked reports whether a question with the id waits for its answer.
func (c *correlator) asked(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.questions[id] != nil
}

// answer hands over the answer to a question, which is in b.
func (c *correlator) answer(id string, b []byte) {
	c.mu.Lock()
	answer := c.questions[id]
	c.mu.Unlock()
	f := new(wire.Frame)
	if answer != nil && wire.DecodeAnswer(slices.Clone(b), f) == nil {
		select {
		case answer <- f:
		default:
		}
	}
}

// await begins to wait for the reply to a request.
func (c *correlator) await(r *request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.requests[r.id]; twice {
		return agora.Errorf(agora.InvalidRequest, "a request with this request_id is under way")
	}
	c.requests[r.id] = r
	return nil
}

// abandon waits no longer for a reply. late says that one may still come; one that came just now is given up.
func (c *correlator) abandon(r *request, late bool) {
	c.mu.Lock()
	delete(c.requests, r.id)
	if late {
		c.abandoned.add(requestKey{r.to, r.id})
	}
	c.mu.Unlock()
	select {
	case m := <-r.reply:
		m.Close()
	default:
	}
}

// reply hands a reply to the one who waits for it, if the agent that was asked has sent it. taken says that nobody else
// is to get it; wanted, that somebody waits. It is called with the mailbox's lock held.
func (c *correlator) reply(m *Message) (taken, wanted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := m.RequestID()
	if r := c.requests[id]; r != nil && id != "" && r.to == m.From {
		delete(c.requests, id)
		r.reply <- m
		return true, true
	}
	if id != "" && c.abandoned.has(requestKey{m.From, id}) {
		return true, false
	}
	for _, r := range c.requests {
		if r.stream != "" && r.stream == m.StreamID && r.to == m.From {
			delete(c.requests, r.id)
			r.reply <- m
			return true, true
		}
	}
	return false, false
}

// failRequest fails a request by its request_id; it returns false when there is none.
func (c *correlator) failRequest(id string, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests[id]
	if r == nil {
		return false
	}
	delete(c.requests, id)
	r.failed <- err
	return true
}

// open enters a call, which fails when ctx ends.
func (c *correlator) open(ctx context.Context, t *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[t.id] = t
	t.stop = context.AfterFunc(ctx, func() { t.fail(context.Cause(ctx)) })
}

// call returns the open call with the id, or nil.
func (c *correlator) call(id string) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id]
}

// over takes a call that has ended off those that are open.
func (c *correlator) over(t *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.stop()
	delete(c.calls, t.id)
}

// giveUp notes that nobody waits for a call any more.
func (c *correlator) giveUp(key requestKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned.add(key)
}

// gaveUp reports whether a request or a call was given up.
func (c *correlator) gaveUp(key requestKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.abandoned.has(key)
}

// stalest returns the call with most bytes among those that have not been read for so long. It is called with the
// mailbox's lock held.
func (c *correlator) stalest(now time.Time, stall time.Duration) (worst *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.calls {
		if len(t.pieces) > 0 && now.Sub(t.read) >= stall && (worst == nil || t.bytes > worst.bytes) {
			worst = t
		}
	}
	return worst
}
