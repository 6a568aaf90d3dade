package aip

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// quests is the stream of a session, as its initiator has it.
type quests = grpc.BidiStreamingClient[Message, Message]

// opener opens the stream of a session. It returns the channel that it uses as well, even with an error; nil for none.
type opener func(context.Context) (quests, *channel, error)

// leg is one use of a session, from START_QUEST to its end.
type leg struct {
	stream   quests
	cancel   context.CancelFunc
	release  func()
	stopping bool        // STOP_QUEST was sent
	over     bool        // the session is free again
	answered bool        // STOP_RESPONSE has come
	late     *time.Timer // ends a call that continues behind that
}

// endTime is how long the end of a call may come behind its STOP_RESPONSE.
const endTime = 5 * time.Second

// begin opens a leg, in place of the one before. It is called with the lock, which it gives up while it connects.
func (c *Call) begin() (*leg, error) {
	if c.leg != nil {
		c.leg.end()
	}
	c.mu.Unlock()
	l, err := c.newLeg()
	c.mu.Lock()
	if err == nil && c.shut {
		l.end()
		err = ErrClosed
	}
	if err != nil {
		return nil, err
	}
	c.leg = l
	return l, nil
}

func (c *Call) newLeg() (*leg, error) {
	ctx, cancel := c.agent.within(c.ctx)
	stream, ch, err := c.open(ctx)
	release := sync.OnceFunc(func() {
		cancel()
		if ch != nil {
			c.agent.pool.release(ch)
		}
	})
	if err != nil {
		release()
		return nil, c.agent.why(err)
	}
	return &leg{stream: stream, cancel: cancel, release: release}, nil
}

// end gives back what a leg has.
func (l *leg) end() {
	if l.late != nil {
		l.late.Stop()
	}
	l.over = true
	l.release()
}
