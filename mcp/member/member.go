package member

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/internal/quote"
)

// Member stands between one MCP server and the cluster.
type Member struct {
	cfg    Config
	id     string
	client *client.Client
	server server
	slots  chan struct{} // a token for each call in hand

	version string          // of the protocol that the server was last reached in; the watcher's own, as the next
	said    map[string]bool // what was logged of tools
	limit   int             // bytes of a card that edges take, as far as is known

	toldMu sync.Mutex  // guards the field below
	told   client.Card // what the directory says
}

// New returns a member that does nothing yet. INVALID_REQUEST where the configuration makes no sense.
func New(cfg Config) (*Member, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Member{cfg: cfg, slots: make(chan struct{}, cfg.MaxCalls), said: map[string]bool{}, limit: maxCard}, nil
}

// Run makes the server an agent of the cluster until ctx ends, and returns nil then. It is an error where the server
// does not come to be, or no edge takes the agent: AGENT_EXISTS where another connection is that agent already; and
// where the client is over, why. At the end calls in hand end with an error, and the server has ended when it returns.
// It is called once.
func (m *Member) Run(ctx context.Context) error {
	s, err := m.open(ctx, "")
	if err != nil {
		return unless(ctx, err)
	}
	if err := m.enter(ctx, s); err != nil {
		s.close(m.cfg.Grace)
		return unless(ctx, err)
	}
	m.cfg.Log.Info("the tool server is a member of the cluster", "agent", m.id, "tools", len(m.names()), "protocol", s.InitializeResult().ProtocolVersion)
	return unless(ctx, m.serve(ctx, s))
}

// unless returns err, unless ctx has ended, which is no failure.
func unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// enter registers the agent with the tools of a session.
func (m *Member) enter(ctx context.Context, s *session) error {
	card, err := m.card(ctx, s)
	if err != nil {
		return err
	}
	if m.id = m.cfg.Client.Agent; m.id == "" {
		if m.id, err = idOf(s.InitializeResult()); err != nil {
			return err
		}
	}
	cfg := m.cfg.Client
	cfg.Agent, cfg.Handlers = m.id, m.cfg.MaxCalls+spareHandlers
	if cfg.Log == nil {
		cfg.Log = m.cfg.Log
	}
	return m.fitting(card, func(card client.Card) error {
		cfg.Card = card
		m.client, err = m.dial(ctx, cfg)
		return err
	})
}

// spareHandlers deal with messages beside calls, and refuse those that are too many.
const spareHandlers = 16

// dial connects to the cluster. It continues trying for as long as no edge says that it is of no use.
func (m *Member) dial(ctx context.Context, cfg client.Config) (*client.Client, error) {
	for n := 0; ; n++ {
		c, err := client.Dial(ctx, cfg)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		e := agora.AsError(err)
		if e.Code != agora.Unavailable && e.Code != agora.RateLimited {
			return nil, err
		}
		m.cfg.Log.Warn("no edge takes the agent yet", "agent", m.id, "edges", strings.Join(quote.Addresses(cfg.URLs), ","), "err", err)
		if !pause.For(ctx, max(e.RetryAfter, m.after(n))) {
			return nil, ctx.Err()
		}
	}
}

// serve answers calls until ctx or the client has ended.
func (m *Member) serve(ctx context.Context, s *session) error {
	m.server.use(s)
	life, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		m.watch(life, s)
	}()
	err := m.client.Handle(life, m.handle)
	stop()
	closing := m.client.Close()
	<-watched
	if errors.Is(closing, client.ErrClosed) {
		closing = nil
	}
	if ctx.Err() != nil {
		return closing
	}
	return err
}

// farewell is how long answers may take to be sent when the member ends.
const farewell = 3 * time.Second
