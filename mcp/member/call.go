package member

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/wire"
)

// errSlow is why a call ends that the server does not answer in time.
var errSlow = errors.New("the tool did not answer in time")

// handle deals with one message: a call of a tool is made, another request is refused, and the rest dropped.
func (m *Member) handle(ctx context.Context, msg *client.Message) {
	tool, arguments, is := toolCall(msg)
	switch {
	case is:
		m.take(ctx, msg, tool, arguments)
	case msg.RequestID() != "" && !msg.IsReply:
		said, end := m.speaking(ctx)
		defer end()
		(&answer{m: m, msg: msg, said: said}).end(errorPayload(m.onlyTools()))
	default:
		m.cfg.Log.Debug("a message that is no call is dropped", "from", msg.From)
	}
}

// take makes a call, where there are not too many already.
func (m *Member) take(ctx context.Context, msg *client.Message, tool string, arguments json.RawMessage) {
	said, end := m.speaking(ctx)
	defer end()
	a := &answer{m: m, msg: msg, said: said}
	nameBeside(msg)
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	default:
		a.end(errorPayload(&agora.Error{Code: agora.RateLimited, Message: "the tool server has too many calls in hand", RetryAfter: time.Second}))
		return
	}
	asked, giveUp := msg.Context(ctx)
	defer giveUp()
	timed, stop := context.WithTimeoutCause(asked, m.cfg.CallTimeout, errSlow)
	defer stop()
	payload, err := m.ask(timed, a, tool, arguments)
	if givenUp(asked) {
		a.cancel()
		return
	}
	if err != nil {
		e := failed(timed, err, m.cfg.CallTimeout)
		m.cfg.Log.Debug("a call has failed", "tool", cut(tool, agora.MaxSkillName), "code", e.Code, "cause", e.Cause)
		payload = errorPayload(e)
	}
	a.end(payload)
}

// nameBeside has a request that is named beside its payload be answered in the same way: then an answer that is an
// object stays as the tool has written it.
func nameBeside(msg *client.Message) {
	payload := msg.Payload
	if msg.Payload = nil; msg.RequestID() == "" {
		msg.Payload = payload
	}
}

// givenUp reports whether nobody waits for the answer to a message any more.
func givenUp(asked context.Context) bool {
	why := context.Cause(asked)
	return errors.Is(why, client.ErrCancelled) || errors.Is(why, context.DeadlineExceeded)
}

// speaking returns a context for what is answered, which lasts a farewell longer than the one of the message.
func (m *Member) speaking(ctx context.Context) (context.Context, func()) {
	said, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(farewell, end) })
	return said, func() { stop(); end() }
}

// toolCall returns the tool that a message calls, and its arguments; false where it is no such call. It reads what
// edges have read when they checked the call, and nothing else.
func toolCall(msg *client.Message) (tool string, arguments json.RawMessage, is bool) {
	if msg.IsReply || msg.Stream || msg.Media != "" {
		return "", nil, false
	}
	return wire.ToolCallOf(msg.Payload)
}

// attempts is how often a call is made that the server was never handed.
const attempts = 3

// ask has the server make a call, waits for it to be there if need be, and returns the payload that answers it. What
// the server tells of its progress goes to the answer.
func (m *Member) ask(ctx context.Context, a *answer, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	p := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(`{}`)}
	switch text := bytes.TrimSpace(arguments); {
	case len(text) == 0 || string(text) == "null":
	case text[0] != '{':
		return nil, agora.Errorf(agora.InvalidRequest, "the arguments of a tool of this agent are an object")
	default:
		p.Arguments = arguments
	}
	for n := 1; ; n++ {
		s, err := m.server.acquire(ctx, m.cfg.RestartWait)
		if err != nil {
			return nil, err
		}
		r, err := s.call(ctx, a, p)
		s.calls.Done()
		if err == nil {
			return payloadOf(r)
		}
		if n == attempts || ctx.Err() != nil || !errors.Is(err, errNotHanded) {
			return nil, err
		}
		s.end(errEnded) // another one takes the call
	}
}

// call makes a call, and returns when it is answered, ctx has ended or the session. The error is errNotHanded where the
// server has never seen the call.
func (s *session) call(ctx context.Context, a *answer, p *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })()
	ctx, unseen := handing(ctx)
	token, progress, end := s.progress.follow()
	defer end()
	q := *p
	q.Meta = mcp.Meta{"progressToken": token}
	var r *mcp.CallToolResult
	var err error
	var calling sync.WaitGroup
	defer calling.Wait()
	done := make(chan struct{})
	calling.Go(func() {
		defer close(done)
		r, err = s.CallTool(ctx, &q)
	})
	for {
		select {
		case line := <-progress:
			a.piece(line)
		case <-done:
			switch {
			case err == nil:
			case unseen.Load() || errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed):
				err = errNotHanded
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			}
			return r, err
		}
	}
}
