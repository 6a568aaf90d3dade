package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/wire"
)

// Client is one agent's connection to the cluster. All its methods may be
// called by many goroutines at a time.
type Client struct {
	cfg       Config
	addresses []string
	card      atomic.Pointer[wire.Agent] // what is registered; nil for nobody

	out  *outbox
	mail *mailbox
	wake chan struct{} // holds a token while the writer has something to do

	wg      sync.WaitGroup
	ctx     context.Context // ends when the client is over
	end     context.CancelFunc
	goodbye chan struct{} // closed by Close
	closing sync.Once
	done    chan struct{} // closed when all has ended

	mu       sync.Mutex // guards the fields below
	err      error      // why it ended
	spaces   map[string]*Space
	calls    map[string]chan *wire.Frame // by id
	open     map[string]*Call            // by id
	requests map[string]*request         // by request_id
	gone     recent[requestKey]          // requests and calls given up

	// The goroutine of run owns these.
	at      int       // index of the address in use
	token   string    // resumes the session
	counter uint64    // of ids of registrations
	doubt   time.Time // when a registration went without an answer last; zero for never
	saved   time.Time // when positions were saved last; the writer's

	presented string  // the token of the last attempt to connect
	refused   refused // the last one that no edge took
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
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	l, err := c.dialFirst(ctx)
	if err != nil {
		c.end()
		return nil, err
	}
	c.wg.Go(func() { c.run(l) })
	return c, nil
}

func newClient(cfg Config) (*Client, error) {
	c := &Client{
		cfg: cfg.withDefaults(), wake: make(chan struct{}, 1),
		goodbye: make(chan struct{}), done: make(chan struct{}),
		spaces: map[string]*Space{}, calls: map[string]chan *wire.Frame{}, open: map[string]*Call{},
		requests: map[string]*request{},
	}
	var err error
	if c.addresses, err = cfg.addresses(); err != nil {
		return nil, err
	}
	if cfg.Agent != "" {
		card, err := cfg.agent()
		if err != nil {
			return nil, err
		}
		c.card.Store(card)
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.out = newOutbox(c.cfg.MaxPending, c.cfg.Patience, c.nudge)
	c.out.trace = c.cfg.Traceparent
	c.mail = newMailbox(c)
	return c, nil
}

// nudge wakes the writer.
func (c *Client) nudge() { signal(c.wake) }

// load takes the positions of an earlier run.
func (c *Client) load(ctx context.Context) error {
	if c.cfg.LastSeq > 0 {
		c.mail.begin(c.cfg.LastSeq)
		c.mail.ours = true
	}
	if c.cfg.State == nil {
		return nil
	}
	p, err := c.cfg.State.Load(ctx)
	if err != nil {
		return err
	}
	if p.LastSeq > 0 {
		c.mail.begin(p.LastSeq)
		c.mail.ours = true
	}
	c.mail.spaces = maps.Clone(p.Spaces)
	return nil
}

// Agent returns the id that the client is.
func (c *Client) Agent() string { return c.cfg.Agent }

// UpdateCard replaces what the directory says of the agent, and returns when it says so. It stays what is registered, also where the client connects
// again. Where it is refused the card of before stays.
func (c *Client) UpdateCard(ctx context.Context, card Card) error {
	cfg := c.cfg
	cfg.Card = card
	a, err := cfg.agent()
	if err != nil {
		return err
	}
	if _, err := c.call(ctx, &wire.Frame{Type: "agent.register", Agent: a}); err != nil {
		return err
	}
	c.card.Store(a)
	return nil
}

// Done is closed when the client is over: closed, refused or taken over. Then Err says why.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the client is over, nil while it is not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close acknowledges what is done with, says goodbye and returns when every
// goroutine of the client has ended. The session is over then: open streams are
// aborted, spaces left; the mailbox stays. What waits for a receipt fails with [ErrClosed].
func (c *Client) Close() error {
	c.closing.Do(func() { close(c.goodbye) })
	force := time.AfterFunc(2*goodbyeTime, c.end) // where the socket takes nothing
	defer force.Stop()
	c.wg.Wait()
	if err := c.Err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// finish ends everything that waits. It is called once, by run, at its end.
func (c *Client) finish(err error) {
	c.mu.Lock()
	c.err = err
	spaces := slices.Collect(maps.Values(c.spaces))
	c.mu.Unlock()
	c.end()
	c.out.close(err)
	c.mail.finish(err)
	for _, s := range spaces {
		s.finish(err)
	}
	close(c.done)
}
