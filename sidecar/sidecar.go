package sidecar

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
)

// Sidecar stands beside one agent.
type Sidecar struct {
	cfg     Config
	deliver *url.URL // nil where messages are refused
	up      *upstream
	edges   *edges
	gate    *gate
	api     *api
	state   state
	stats   stats
	moved   chan struct{} // holds a token when edges are to be told of the peer

	// Run sets these before anything else runs.
	id        string
	log       *slog.Logger // names the agent
	client    *client.Client
	peer      *peerSide
	registrar *registrar
	mail      *mail
	spaces    *spaces
}

// state is how the sidecar stands with the cluster.
type state struct {
	joined atomic.Bool // it is connected
	ending atomic.Bool // nothing new is begun
}

// New returns a sidecar that does nothing yet. INVALID_REQUEST where the configuration makes no sense.
func New(cfg Config) (*Sidecar, error) {
	cfg.Limits = cfg.Limits.withDefaults()
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	base, err := cfg.agentURL()
	if err != nil {
		return nil, err
	}
	deliver, err := cfg.deliverURL(base)
	if err != nil {
		return nil, err
	}
	if cfg.Client.Agent != "" {
		if _, err := agora.ParseOwnID(cfg.Client.Agent); err != nil {
			return nil, err
		}
	}
	s := &Sidecar{cfg: cfg, deliver: deliver, moved: make(chan struct{}, 1)}
	s.up = &upstream{agent: newAgent(base, &s.cfg.Limits), handoff: cfg.Handoff, log: cfg.Log, changed: make(chan struct{}, 1)}
	s.edges = newEdges(&s.cfg)
	if s.gate, err = newGate(s.edges, cfg.Peer.Allow); err != nil {
		return nil, err
	}
	s.api = &api{log: cfg.Log, up: s.up, state: &s.state, stats: &s.stats, gate: adminGate{cfg.Token}}
	return s, nil
}

// Run makes the agent a member of the cluster until ctx ends, and returns nil then; an error where it can't be one, or
// not any more. It waits for the agent to show its card, and for an edge that answers. At the end requests in progress
// have Limits.Grace; all that it has begun has ended when it returns. It is called once.
func (s *Sidecar) Run(ctx context.Context) error {
	defer s.up.close()
	defer s.edges.close()
	if s.cfg.Admin != nil {
		life, end := context.WithCancel(context.WithoutCancel(ctx))
		var admin sync.WaitGroup
		admin.Go(func() { s.api.serve(life, s.cfg.Admin) })
		defer admin.Wait()
		defer end()
	}
	if err := s.enter(ctx); err != nil {
		return unless(ctx, err)
	}
	return unless(ctx, s.serve(ctx))
}

// unless returns err, unless ctx has ended, which is no failure.
func unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// enter waits for the agent's card, makes it a peer, and registers it.
func (s *Sidecar) enter(ctx context.Context) (err error) {
	if err := s.up.first(ctx); err != nil {
		return err
	}
	card, _ := s.up.now()
	if s.id = cmp.Or(s.cfg.Client.Agent, card.Name); s.id == "" {
		return agora.Errorf(agora.InvalidRequest, "the agent's card has no name to be its id: set one")
	}
	if _, err := agora.ParseOwnID(s.id); err != nil {
		return &agora.Error{Code: agora.InvalidRequest, Message: "the name of the agent's card can't be its id: set one", Cause: err}
	}
	s.log = s.cfg.Log.With("agent", s.id)
	s.gate.id = s.id
	s.peer = &peerSide{up: s.up, limits: &s.cfg.Limits, log: s.log, stats: &s.stats, moved: s.moved, gate: s.gate}
	if err := s.peer.open(&s.cfg.Peer); err != nil {
		return err
	}
	s.registrar = &registrar{id: s.id, limits: &s.cfg.Limits, log: s.log, up: s.up, edges: s.edges, peer: s.peer, gate: s.gate, moved: s.moved}
	if s.client, err = s.dial(ctx, s.registrar.sessionCard()); err != nil {
		s.peer.close()
		return err
	}
	s.registrar.client = s.client
	posts := &delivery{agent: s.up.agent, url: s.deliver, limits: &s.cfg.Limits, log: s.log, stats: &s.stats}
	s.mail = &mail{delivery: posts, up: s.up, client: s.client, state: &s.state, stopped: make(chan struct{})}
	s.spaces = &spaces{delivery: posts, client: s.client}
	s.state.joined.Store(true)
	return nil
}

// dial connects to the cluster. It continues trying for as long as no edge says that it is of no use.
func (s *Sidecar) dial(ctx context.Context, card client.Card) (*client.Client, error) {
	cfg := s.cfg.Client
	cfg.Agent, cfg.Card = s.id, card
	cfg.Log = cmp.Or(cfg.Log, s.cfg.Log)
	tell := cfg.OnStatus
	cfg.OnStatus = func(now client.Status) {
		if s.state.joined.Store(now.Err == nil); now.Err == nil {
			signal(s.moved)
		}
		if tell != nil {
			tell(now)
		}
	}
	for n := 1; ; n++ {
		c, err := client.Dial(ctx, cfg)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		e := agora.AsError(err)
		if e.Code != agora.Unavailable && e.Code != agora.RateLimited {
			return nil, err
		}
		s.log.Warn("no edge takes the agent yet", "err", err)
		if !pause.For(ctx, max(e.RetryAfter, s.cfg.Limits.after(n))) {
			return nil, ctx.Err()
		}
	}
}

// serve does everything until ctx or the client has ended.
func (s *Sidecar) serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	life, die := context.WithCancel(context.WithoutCancel(ctx))
	defer die()
	s.mail.life = life

	var inside, requests sync.WaitGroup
	s.peer.serve(ctx, work)
	inside.Go(func() { s.up.watch(ctx) })
	inside.Go(func() { s.registrar.tellCard(ctx) })
	inside.Go(func() { s.registrar.watch(ctx) })
	s.spaces.open(ctx, work)
	requests.Go(func() { s.mail.take(ctx, work) })
	s.api.member.Store(&member{s.client, s.spaces, s.peer})
	s.log.Info("the agent is a member of the cluster", "peer", s.peer.id())

	select {
	case <-ctx.Done():
	case <-s.client.Done():
	}
	s.state.ending.Store(true)
	stop()
	inside.Wait()
	s.registrar.withdraw()
	s.settle(abandon, func() {
		s.peer.wait()
		<-s.mail.stopped
		s.mail.inHand.Wait()
	})
	err := s.client.Close() // what was not taken comes again to the one who is next
	requests.Wait()
	s.spaces.wait()
	s.peer.close()
	if errors.Is(err, client.ErrClosed) {
		err = nil
	}
	return err
}

// settle waits for what is in progress, and gives it up when the grace is over: streamed replies are aborted with the
// session.
func (s *Sidecar) settle(abandon func(), wait func()) {
	over := make(chan struct{})
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		defer close(over)
		wait()
	})
	defer abandon()
	late := time.NewTimer(s.cfg.Limits.Grace)
	defer late.Stop()
	select {
	case <-over:
		return
	case <-late.C:
		s.log.Warn("requests in progress are given up")
		abandon()
	}
	late.Reset(abandonTime)
	select {
	case <-over:
	case <-late.C:
		_ = s.client.Close() // which ends what is written to nobody that reads; serve returns what it does
	}
}

// abandonTime is how long what was given up may take to end.
const abandonTime = time.Second

// signal leaves a token in a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
