package broker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
)

// link is one life of the connection: what was asked in it is answered in it or never.
type link struct {
	ctx  context.Context
	lost context.CancelFunc
}

func newLink() *link {
	l := new(link)
	l.ctx, l.lost = context.WithCancel(context.Background())
	return l
}

// within returns a context for one question: it is over after d, and when the connection is lost.
func (c *conn) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(c.link.Load().ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// reconnected runs on the connection's own goroutine and must not block.
func (c *conn) reconnected() {
	c.lostAt.Store(0)
	c.onBack()
	signal(c.back)
}

// onError hears of what went wrong outside any call: mostly, that a channel of live messages was full.
func (c *conn) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if sub != nil && errors.Is(err, nats.ErrSlowConsumer) {
		c.onDrop(sub.Subject)
		return
	}
	if errors.Is(err, nats.ErrPermissionViolation) && !strings.Contains(err.Error(), "$SYS.") { // the servers' time may be kept from us
		c.denied.Store(&err)
	}
	if c.running.Err() == nil {
		c.cfg.Log.Warn("nats", "err", err)
	}
}

// Connected reports whether the log can be reached now.
func (c *conn) Connected() bool { return c.nc.IsConnected() }

// Lost reports whether the connection has been away for longer than an election takes.
func (c *conn) Lost() bool {
	at := c.lostAt.Load()
	return at != 0 && agora.Ticks()-at > int64(c.cfg.Election)
}

// Election returns how long the log may be away before what needs it is to be refused: longer than any election takes.
func (c *conn) Election() time.Duration { return c.cfg.Election }

// Life numbers the connection to the log. The number grows after a connection was lost and before
// anything can come over the next one, so what was read under one life and is
// looked at under the same was never read behind an absence.
func (c *conn) Life() uint64 { return c.lives.Load() }

// Reconnected returns a channel that holds one token after the connection came back. It is for one listener.
func (c *conn) Reconnected() <-chan struct{} { return c.back }

// MaxRecord is the largest body in bytes that can be stored: the server's max_payload less room for headers.
func (c *conn) MaxRecord() int { return jslog.MaxRecord(c.nc) }
