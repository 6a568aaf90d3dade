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
	agent   *agent
	deliver *url.URL // nil where messages are refused
	edges   *edges
	shown   shown
	changed chan struct{} // holds a token when the session is to say something else of itself
	moved   chan struct{} // holds a token when edges are to be told of the peer
	stats   stats

	// Run sets these before anything else runs.
	id     string
	client *client.Client
	peer   *peerSide
	mail   mail
	untold string // why edges were not told of the peer, last; watchEdges's
	spaces spaces

	entered atomic.Bool // what Run sets is set
	joined  atomic.Bool // it is connected to the cluster
	bound   atomic.Bool // an edge has taken the peer
	noPeers atomic.Bool // edges have no door for peers
	asPeer  atomic.Bool // the directory is to show the agent as a peer, and its session to say nothing of itself
	ending  atomic.Bool // nothing new is begun
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
	s := &Sidecar{cfg: cfg, deliver: deliver, changed: make(chan struct{}, 1), moved: make(chan struct{}, 1)}
	s.agent = newAgent(base, &s.cfg.Limits)
	s.edges = newEdges(&s.cfg)
	s.spaces.side, s.mail.stopped = s, make(chan struct{})
	return s, nil
}

// Run makes the agent a member of the cluster until ctx ends, and returns nil then; an error where it can't be one, or not any more. It waits for the agent to show its card, and for an
// edge that answers. At the end requests in progress have Limits.Grace; all that it has begun has ended when it returns. It is called once.
func (s *Sidecar) Run(ctx context.Context) error {
	defer s.agent.close()
	defer s.edges.close()
	if s.cfg.Admin != nil {
		life, end := context.WithCancel(context.WithoutCancel(ctx))
		var admin sync.WaitGroup
		admin.Go(func() { s.serveAdmin(life) })
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
	if err := s.firstCard(ctx); err != nil {
		return err
	}
	card, _ := s.shown.now()
	if s.id = cmp.Or(s.cfg.Client.Agent, card.Name); s.id == "" {
		return agora.Errorf(agora.InvalidRequest, "the agent's card has no name to be its id: set one")
	}
	if _, err := agora.ParseOwnID(s.id); err != nil {
		return &agora.Error{Code: agora.InvalidRequest, Message: "the name of the agent's card can't be its id: set one", Cause: err}
	}
	if s.peer, err = s.newPeer(); err != nil {
		return err
	}
	if s.client, err = s.dial(ctx, s.sessionCard()); err != nil {
		s.peer.close()
		return err
	}
	s.joined.Store(true)
	return nil
}

// dial connects to the cluster. It goes on trying for as long as no edge says that it is of no use.
func (s *Sidecar) dial(ctx context.Context, card client.Card) (*client.Client, error) {
	cfg := s.cfg.Client
	cfg.Agent, cfg.Card = s.id, card
	cfg.Log = cmp.Or(cfg.Log, s.cfg.Log)
	tell := cfg.OnStatus
	cfg.OnStatus = func(now client.Status) {
		if s.joined.Store(now.Err == nil); now.Err == nil {
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
		s.cfg.Log.Warn("no edge takes the agent yet", "agent", s.id, "err", err)
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
	inside.Go(func() { s.watchCard(ctx) })
	inside.Go(func() { s.tellCard(ctx) })
	inside.Go(func() { s.watchEdges(ctx) })
	s.spaces.open(ctx, work)
	requests.Go(func() { s.takeMail(ctx, work) })
	s.entered.Store(true)
	s.cfg.Log.Info("the agent is a member of the cluster", "agent", s.id, "peer", s.peer.id())

	select {
	case <-ctx.Done():
	case <-s.client.Done():
	}
	s.ending.Store(true)
	stop()
	inside.Wait()
	s.withdraw()
	s.settle(abandon, func() {
		s.peer.wait()
		<-s.mail.stopped
		s.mail.inHand.Wait()
	})
	err := s.client.Close() // what was not taken comes again to whoever is next
	requests.Wait()
	s.spaces.wait()
	s.peer.close()
	if errors.Is(err, client.ErrClosed) {
		err = nil
	}
	return err
}

// settle waits for what is in progress, and gives it up when the grace is over: streamed replies are aborted with the session.
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
		s.cfg.Log.Warn("requests in progress are given up")
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
