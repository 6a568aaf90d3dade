package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/agora-relay/agora/wire"
)

// Client is one agent's connection to the cluster. All its methods may be
// called by many goroutines at a time.
type Client struct {
	cfg  Config
	log  *slog.Logger // names the agent
	life *lifetime
	wg   sync.WaitGroup
	wake chan struct{} // holds a token while the writer has something to do

	out         *outbox
	asks        *correlator
	sender      *sender
	mail        *mailbox
	spaces      *memberships
	checkpoints *checkpoints
	in          *dispatcher
	connector   *connector
}

// Dial connects to one of the edges, registers the agent and returns a client
// that stays connected until Close, or until it can't be the agent any more
// ([Client.Done]). It tries each address once; ctx bounds that alone. When none
// answers the error is UNAVAILABLE; refusals are errors with their own codes.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.checkpoints.load(ctx, cfg.LastSeq); err != nil {
		return nil, err
	}
	l, err := c.connector.dialFirst(ctx)
	if err != nil {
		c.life.end()
		return nil, err
	}
	c.wg.Go(func() { c.run(l) })
	return c, nil
}

func newClient(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	c := &Client{cfg: cfg, log: cfg.Log.With("agent", cfg.Agent), life: newLifetime(), wake: make(chan struct{}, 1), asks: newCorrelator()}
	wake, waiters := func() { signal(c.wake) }, newWaiters()
	c.out = newOutbox(cfg.MaxPending, cfg.Patience, wake)
	c.out.trace = cfg.Traceparent
	c.sender = &sender{
		out: c.out, asks: c.asks, life: c.life, waiters: waiters, log: newMailLog(cfg.Stall, waiters, wake), trace: cfg.Traceparent,
	}
	c.mail = newMailbox(c.sender, cfg.MaxBuffered)
	c.spaces = newMemberships(c.sender, wake, max(1, cfg.MaxBuffered/4), cfg.Stall)
	c.checkpoints = &checkpoints{store: cfg.State, log: c.log, mail: c.mail, spaces: c.spaces}
	c.in = &dispatcher{log: c.log, onGap: cfg.OnGap, out: c.out, asks: c.asks, mail: c.mail, spaces: c.spaces}
	var err error
	c.connector, err = newConnector(cfg, c.log, c.life, c.checkpoints)
	return c, err
}

// Agent returns the id that the client is.
func (c *Client) Agent() string { return c.cfg.Agent }

// UpdateCard replaces what the directory says of the agent, and returns when it says so. It stays what is registered,
// also where the client connects again. Where it is refused the card of before stays.
func (c *Client) UpdateCard(ctx context.Context, card Card) error {
	cfg := c.cfg
	cfg.Card = card
	a, err := cfg.agent()
	if err != nil {
		return err
	}
	if _, err := c.sender.call(ctx, &wire.Frame{Type: "agent.register", Agent: a}); err != nil {
		return err
	}
	c.connector.card.Store(a)
	return nil
}

// Done is closed when the client is over: closed, refused or taken over. Then Err says why.
func (c *Client) Done() <-chan struct{} { return c.life.done }

// Err returns why the client is over, nil while it is not.
func (c *Client) Err() error { return c.life.why() }

// Close acknowledges what is done with, says goodbye and returns when every
// goroutine of the client has ended. The session is over then: open streams are
// aborted, spaces left; the mailbox stays. What waits for a receipt fails with [ErrClosed].
func (c *Client) Close() error {
	c.life.close()
	force := time.AfterFunc(2*goodbyeTime, c.life.end) // where the socket takes nothing
	defer force.Stop()
	c.wg.Wait()
	if err := c.Err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}
