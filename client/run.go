package client

import (
	"context"
	"sync"
)

// run keeps the client connected until it is closed or can't be the agent any more.
func (c *Client) run(l *link) {
	for attached := false; ; attached = true {
		c.attach(l, attached)
		err := c.serve(l)
		if c.life.closed() {
			err = ErrClosed
		}
		if !final(err) || c.connector.ghost(err) {
			c.log.Info("connection lost", "err", err)
			c.connector.status(false, err)
			l, err = c.connector.reconnect(l, err)
		}
		if err != nil {
			c.checkpoints.save(true)
			c.finish(err)
			return
		}
	}
}

// attach makes what is under way go on over a new connection.
func (c *Client) attach(l *link, again bool) {
	frames, bytes := c.out.pending()
	c.log.Info("connected", "edge", c.connector.edge(), "resumed", l.resumed, "pending", frames, "bytes", bytes)
	c.connector.status(l.resumed, nil)
	if !again {
		return
	}
	c.mail.restart()
	if l.resumed {
		c.out.resume()
	} else {
		c.out.restart(c.spaces.rejoins())
	}
	c.spaces.interrupted()
}

// serve reads and writes until the connection is lost, and returns why.
func (c *Client) serve(l *link) error {
	ctx, cancel := context.WithCancelCause(c.life.ctx)
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	defer stop()
	if err := l.begin(); err != nil {
		cancel(err)
		l.conn.Close()
		return err
	}
	var writer sync.WaitGroup
	writer.Go(func() { cancel(c.write(ctx, l)) })
	if c.connector.registers() {
		writer.Go(func() { c.connector.credentials.renew(ctx, l.expires, c.sender.call) })
	}
	cancel(c.in.read(ctx, cancel, l))
	writer.Wait()
	l.conn.Close()
	return context.Cause(ctx)
}

// write writes what is to go out over a connection, until ctx ends.
func (c *Client) write(ctx context.Context, l *link) error {
	w := &writer{l: l, out: c.out, mail: c.mail, checkpoints: c.checkpoints, life: c.life, wake: c.wake, beats: c.connector.registers()}
	return w.run(ctx)
}

// finish ends everything that waits. It is called once, by run, at its end.
func (c *Client) finish(err error) {
	c.life.over(err)
	c.out.close(err)
	c.mail.finish(err)
	c.spaces.finish(err)
	close(c.life.done)
}
