package sidecar

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/p2p"
)

// mail is the messages in hand.
type mail struct {
	*delivery
	lanes
	up      *upstream
	client  *client.Client
	state   *state
	life    context.Context // in which streamed replies are; ends behind the client
	stopped chan struct{}   // closed when no more are taken
	inHand  sync.WaitGroup  // messages that are dealt with
}

// take takes messages until ctx ends, and deals with up to Limits.Held of them at a time. A message is acknowledged
// when it is done with: one that is not, because the sidecar ends, is held until the client is closed, and comes again
// to the one who is the agent next. It returns when all have ended.
func (b *mail) take(ctx, work context.Context) {
	held := make(chan struct{}, b.limits.Held)
	var all sync.WaitGroup
	defer all.Wait()
	defer close(b.stopped)
	for {
		select {
		case held <- struct{}{}:
		case <-ctx.Done():
			return
		}
		taken := make(chan error, 1)
		all.Go(func() {
			defer func() { <-held }()
			acknowledged := func() {}
			defer func() { acknowledged() }()
			for m, err := range b.client.Messages(ctx) {
				if err != nil {
					taken <- err
					return
				}
				acknowledged = b.hold(ctx, work, m, func() { taken <- nil })
				return
			}
		})
		if <-taken != nil {
			return
		}
	}
}

// hold deals with one message, and returns when it may be acknowledged, or can't be any more, with what is to be called
// after that. It calls next once the message has its place.
func (b *mail) hold(ctx, work context.Context, m *client.Message, next func()) (acknowledged func()) {
	b.inHand.Add(1)
	if b.dealWith(ctx, work, m, next) {
		m.Close()
		return b.inHand.Done
	}
	b.inHand.Done()
	<-b.client.Done()
	return func() {}
}

// dealWith reports whether the message is done with.
func (b *mail) dealWith(ctx, work context.Context, m *client.Message, next func()) bool {
	action := ""
	if !m.IsReply && !m.Stream {
		action = wire.ActionOf(m.Payload)
	}
	if action == "handoff" || action == "call_tool" {
		next() // those wait for nobody
		return b.answerAction(work, m, action)
	}
	before, leave := b.enter(m.From)
	defer leave()
	next()
	select {
	case <-before:
		return b.post(ctx, work, m, leave)
	case <-ctx.Done():
		return false
	}
}

// answerAction puts the request of a message to the agent, and replies with what that answers. It reports whether the
// message is done with.
func (b *mail) answerAction(work context.Context, m *client.Message, action string) bool {
	ctx, cancel := m.Context(work)
	defer cancel()
	x, err := b.askAction(ctx, m, action)
	if err != nil {
		return work.Err() == nil && givenUp(ctx) || b.replyFault(work, m, err)
	}
	defer x.Close()
	return b.reply(ctx, m, x, action == "handoff")
}

// askAction puts what an action asks for to the agent.
func (b *mail) askAction(ctx context.Context, m *client.Message, action string) (*answer, error) {
	if action == "handoff" {
		q, err := p2p.FromPayload(m.Payload)
		if err != nil {
			return nil, err
		}
		return b.up.ask(ctx, &q)
	}
	name, arguments, ok := wire.ToolCallOf(m.Payload)
	if !ok {
		return nil, p2p.NewFault(http.StatusBadRequest, "the call names no tool")
	}
	card, guard := b.up.now()
	return b.up.callSkill(ctx, &card, guard, name, arguments)
}

// givenUp reports whether the one who has sent the message that a context is of waits for no answer any more: it was
// cancelled, or its time is over.
func givenUp(ctx context.Context) bool {
	why := context.Cause(ctx)
	return errors.Is(why, client.ErrCancelled) || errors.Is(why, context.DeadlineExceeded)
}

// lasting returns a context that ends with the time of a message's, but not with what else that ends with: so a
// streamed reply is not cancelled where the session is about to end.
func (b *mail) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	if by, has := ctx.Deadline(); has {
		return context.WithDeadline(b.life, by)
	}
	return context.WithCancel(b.life)
}

// lanes have what one sender has posted be dealt with one after the other.
type lanes struct {
	mu   sync.Mutex // guards the field below
	last map[string]chan struct{}
}

// enter returns a channel that is closed when the turn of one more message of a sender has come, and what ends its
// turn, any number of times.
func (l *lanes) enter(from string) (before <-chan struct{}, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]chan struct{}{}
	}
	mine := make(chan struct{})
	before = l.last[from]
	if before == nil {
		c := make(chan struct{})
		close(c)
		before = c
	}
	l.last[from] = mine
	return before, sync.OnceFunc(func() {
		close(mine)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.last[from] == mine {
			delete(l.last, from)
		}
	})
}
