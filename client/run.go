package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

// run keeps the client connected until it is closed or can't be the agent any more.
func (c *Client) run(l *link) {
	for attached := false; ; attached = true {
		c.attach(l, attached)
		err := c.serve(l)
		if c.closed() {
			err = ErrClosed
		}
		if !final(err) || c.ghost(err) {
			c.cfg.Log.Info("connection lost", "agent", c.cfg.Agent, "err", err)
			c.status(false, err)
			l, err = c.reconnect(l, err)
		}
		if err != nil {
			c.save(true)
			c.finish(err)
			return
		}
	}
}

// closed tells whether Close was called.
func (c *Client) closed() bool {
	select {
	case <-c.goodbye:
		return true
	default:
		return false
	}
}

// attach makes what is under way go on over a new connection.
func (c *Client) attach(l *link, again bool) {
	frames, bytes := c.out.pending()
	c.cfg.Log.Info("connected", "agent", c.cfg.Agent, "edge", c.edge(), "resumed", l.resumed, "pending", frames, "bytes", bytes)
	c.status(l.resumed, nil)
	if !again {
		return
	}
	c.mail.restart()
	if l.resumed {
		c.out.resume()
	} else {
		c.out.restart(c.rejoins())
	}
	for _, s := range c.joined() {
		s.interrupted(l.resumed)
	}
}

// serve reads and writes until the connection is lost, and returns why.
func (c *Client) serve(l *link) error {
	ctx, cancel := context.WithCancelCause(c.ctx)
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	defer stop()
	if err := l.begin(); err != nil {
		cancel(err)
		l.conn.Close()
		return err
	}
	var writer sync.WaitGroup
	writer.Go(func() { cancel(c.write(ctx, l)) })
	writer.Go(func() { c.renew(ctx, l) })
	cancel(c.read(ctx, cancel, l))
	writer.Wait()
	l.conn.Close()
	return context.Cause(ctx)
}

// reconnect tries edge after edge until one takes the agent again, waiting as
// long as the edges ask, and longer from round to round.
func (c *Client) reconnect(old *link, why error) (*link, error) {
	ctx, cancel := c.untilGoodbye()
	defer cancel()
	wait := time.Until(old.notBefore)
	if !errors.Is(why, errMoved) {
		wait = max(wait, rand.N(c.cfg.Backoff.Min))
	}
	for n := 0; ; n++ {
		if n > 0 {
			wait = c.cfg.Backoff.after(n - 1)
		}
		if asked := retryAfter(why); asked > 0 {
			wait = max(wait, asked+rand.N(asked/4+1))
		}
		if !pause.For(ctx, wait) {
			return nil, ErrClosed
		}
		c.next()
		l, err := c.dialAny(ctx)
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return nil, ErrClosed
		case final(err) && !c.hopeful(err):
			return nil, err
		}
		c.cfg.Log.Warn("no edge answers", "agent", c.cfg.Agent, "err", err)
		c.status(false, err)
		why = err
	}
}

// untilGoodbye returns a context that ends when Close is called. The function
// that it returns ends it, too, and the goroutine that it takes.
func (c *Client) untilGoodbye() (context.Context, func()) {
	ctx, cancel := context.WithCancel(c.ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-c.goodbye:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); watch.Wait() }
}
