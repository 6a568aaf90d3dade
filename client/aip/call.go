package aip

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	wire "github.com/agora-relay/agora/wire/aip"
)

// Call is a session as its initiator sees it: quests go, and responses come. It is free until Start, and free again
// once STOP_RESPONSE has come or the call has failed; then it may be started again. One goroutine reads it at a time,
// and any may write.
type Call struct {
	agent *Agent
	ctx   context.Context
	to    string
	id    string
	open  opener

	sending   sync.Mutex // held while the call is written
	receiving sync.Mutex // held while the call is read

	mu   sync.Mutex // guards the fields below
	leg  *leg       // nil until Start
	shut bool
}

// Call returns a session with an agent, through the gateway. Nothing is sent before Start. Everything ends with ctx.
// The caller owes it a call of Close.
func (a *Agent) Call(ctx context.Context, to string) *Call {
	return a.newCall(ctx, to, func(ctx context.Context) (quests, *channel, error) {
		c, _, err := a.gateways.pick(ctx)
		if err != nil {
			return nil, nil, err
		}
		stream, err := a.gateways.client(c).RouteAgentCalling(ctx)
		return stream, c, err
	})
}

// CallAt is [Agent.Call] without a gateway: the agent itself is called, at the address that it is listed with.
func (a *Agent) CallAt(ctx context.Context, address, to string) *Call {
	return a.newCall(ctx, to, func(ctx context.Context) (quests, *channel, error) {
		c, err := a.pool.fresh(address)
		if err != nil {
			return nil, nil, err
		}
		stream, err := wire.NewAgentServiceClient(c).CallAgent(ctx)
		return stream, c, err
	})
}

func (a *Agent) newCall(ctx context.Context, to string, open opener) *Call {
	return &Call{agent: a, ctx: ctx, to: to, id: rand.Text(), open: open}
}

// Ask begins a session with an agent through the gateway, says what is to be said, ends it, and returns the answers as
// they come, STOP_RESPONSE the last of them. An error is the last value.
func (a *Agent) Ask(ctx context.Context, to string, content ...*ContentItem) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		c := a.Call(ctx, to)
		defer c.Close()
		err := c.Start(content...)
		if err == nil {
			err = c.Stop()
		}
		if err != nil && !errors.Is(err, io.EOF) { // then Messages says why
			yield(nil, err)
			return
		}
		c.Messages()(yield)
	}
}

// ID returns the id of the session.
func (c *Call) ID() string { return c.id }

// Start begins the session: START_QUEST. [ErrOccupied] unless it is free.
func (c *Call) Start(content ...*ContentItem) error { return c.say(StartQuest, content) }

// Hold says more: HOLD_QUEST. It blocks while the agent does not read. [ErrFree] or [ErrStopping] unless the session is
// occupied.
func (c *Call) Hold(content ...*ContentItem) error { return c.say(HoldQuest, content) }

// Stop asks for the end of the session: STOP_QUEST. The agent may answer more, and ends it then. [ErrFree] or
// [ErrStopping] unless the session is occupied.
func (c *Call) Stop(content ...*ContentItem) error { return c.say(StopQuest, content) }

func (c *Call) say(s SessionStatus, content []*ContentItem) error {
	return c.Send(&Message{SessionStatus: s, Content: content})
}

// Send sends a quest as it is, under the rules for Start, Hold and Stop. It fills in what is empty of its ids. io.EOF
// says that the session has ended at the other end, and Receive says how.
func (c *Call) Send(m *Message) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	m.SenderId = cmp.Or(m.SenderId, c.agent.cfg.ID)
	m.ReceiverId = cmp.Or(m.ReceiverId, c.to)
	m.SessionId = cmp.Or(m.SessionId, c.id)
	m.MessageId = cmp.Or(m.MessageId, rand.Text())
	l, err := c.admit(m.GetSessionStatus())
	if err != nil {
		return err
	}
	if err := l.stream.Send(m); err != nil {
		return c.agent.why(err)
	}
	if m.GetSessionStatus() == StopQuest {
		return c.agent.why(l.stream.CloseSend())
	}
	return nil
}

// admit returns the leg that a quest belongs to: a new one for START_QUEST.
func (c *Call) admit(s SessionStatus) (*leg, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.leg
	free := l == nil || l.over
	switch {
	case c.shut:
		return nil, ErrClosed
	case s == StartQuest && free:
		return c.begin()
	case s == StartQuest:
		return nil, ErrOccupied
	case s != HoldQuest && s != StopQuest:
		return nil, agora.Errorf(agora.InvalidRequest, "%v is not for an initiator to send", s)
	case free:
		return nil, ErrFree
	case l.stopping:
		return nil, ErrStopping
	}
	l.stopping = s == StopQuest
	return l, nil
}

// Receive returns the next answer: HOLD_RESPONSE any number of times, and STOP_RESPONSE, which ends the session. Behind
// that it returns io.EOF, or the status of a session that has failed though it was answered. An agent that ends a
// session without STOP_RESPONSE before it is asked to: io.ErrUnexpectedEOF. [ErrFree] before Start.
func (c *Call) Receive() (*Message, error) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	l := c.current()
	if l == nil {
		return nil, ErrFree
	}
	m, err := l.stream.Recv()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if m.GetSessionStatus() == StopResponse && !l.answered {
			l.answered, l.over = true, true
			l.late = time.AfterFunc(endTime, l.cancel)
		}
		return m, nil
	}
	l.end()
	switch {
	case l.answered && (errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled && c.ctx.Err() == nil):
		return nil, io.EOF
	case errors.Is(err, io.EOF) && !l.stopping:
		return nil, io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	}
	return nil, c.agent.why(err)
}

func (c *Call) current() *leg {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leg
}

// Messages returns the answers as they come, STOP_RESPONSE the last of them. An error is the last value.
func (c *Call) Messages() iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for {
			m, err := c.Receive()
			if errors.Is(err, io.EOF) || !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Collect has every answer of a session handled by each of the handlers, in turn, until the session ends, and returns
// what they return. The first error ends it, and is returned with what there was before.
func Collect[T any](c *Call, handlers ...func(*Message) (T, error)) ([]T, error) {
	var all []T
	for m, err := range c.Messages() {
		if err != nil {
			return all, err
		}
		for _, handle := range handlers {
			v, err := handle(m)
			if err != nil {
				return all, err
			}
			all = append(all, v)
		}
	}
	return all, nil
}

// Close ends the session; one that is not over is cancelled. It may be called more than once.
func (c *Call) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
	if c.leg != nil {
		c.leg.end()
	}
	return nil
}
