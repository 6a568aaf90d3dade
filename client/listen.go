package client

import (
	"context"
	"iter"
	"sync"
)

// Messages yields what other agents send, in order, but for the replies that Request waits for. Several loops share the
// messages among them. A message is acknowledged when the loop continues, and one that is streamed when its stream was
// read to its end, or closed, as well: what was not comes again, whole, to the next run of the program. It ends with an
// error, always: that of ctx, or why the client is over.
func (c *Client) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for {
			m, err := c.mail.take(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			ok := yield(m, nil)
			m.done()
			if !ok {
				return
			}
		}
	}
}

// Receive returns the next message that another agent sends, waiting for it, for a program that says itself when it is
// done with it: such a message is acknowledged by [Message.Ack] and not before. Acknowledgements are cumulative: what
// comes behind a message that is not acknowledged comes again with it, to the next run of the program, although it may
// have been acknowledged. Its errors are those that end [Client.Messages].
func (c *Client) Receive(ctx context.Context) (*Message, error) { return c.mail.take(ctx) }

// Handle calls f for each message, for up to Config.Handlers at a time, each
// begun in order. The context of a call ends with ctx, or at the message's
// deadline. What f has not read of a stream when it returns is given up. Handle
// returns when ctx or the client has ended, and every call has returned.
func (c *Client) Handle(ctx context.Context, f func(context.Context, *Message)) error {
	var wg sync.WaitGroup
	for range c.cfg.Handlers {
		wg.Go(func() {
			for m, err := range c.Messages(ctx) {
				if err == nil {
					handle(ctx, m, f)
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.Err()
}

func handle(ctx context.Context, m *Message, f func(context.Context, *Message)) {
	defer m.Close()
	if !m.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, m.Deadline)
		defer cancel()
	}
	f(ctx, m)
}
