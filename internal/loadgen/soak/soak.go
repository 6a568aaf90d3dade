package soak

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/faultnet"
)

// Config says what a run does. Edges are required.
type Config struct {
	Edges       []string           // WebSocket addresses
	Token       string             // of every agent
	TokenSource client.TokenSource // of every agent, instead; called by many at a time
	TLS         *tls.Config        // for wss; nil: the system's
	Senders     int                // 2 if zero
	Receivers   int                // 2 if zero
	Spaces      int                // 0: none
	Rate        float64            // messages, chunks, questions and events a second, all senders together; 100 if zero
	Cuts        float64            // connections cut a second

	Patience time.Duration // of the clients; see client.Config
	Backoff  client.Backoff
	Log      *slog.Logger // of the clients; discards if nil
}

func (c Config) withDefaults() Config {
	c.Senders = cmp.Or(c.Senders, 2)
	c.Receivers = cmp.Or(c.Receivers, 2)
	c.Rate = cmp.Or(c.Rate, 100)
	return c
}

// Check says what makes no sense, nil where all does.
func (c Config) Check() error {
	c = c.withDefaults()
	for _, edge := range c.Edges {
		if u, err := url.Parse(edge); err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
			return fmt.Errorf("%q is no ws:// or wss:// address", edge)
		}
	}
	switch {
	case len(c.Edges) == 0:
		return errors.New("no address of an edge is given")
	case c.Senders < 0 || c.Receivers < 0 || c.Spaces < 0:
		return errors.New("the numbers of senders, receivers and spaces must not be below 0")
	case !(c.Rate > 0) || !(c.Cuts >= 0):
		return errors.New("the rate must be above 0, and that of cuts not below")
	}
	return nil
}

// Run is load on a cluster, which is checked as it arrives. Its methods may be
// called by many goroutines at a time, each of Stop, Settle and Close in this order.
type Run struct {
	cfg   Config
	name  string // begins every agent's id and every space's name
	tally *tally
	net   *faultnet.Link
	gaps  atomic.Uint64 // told
	away  away

	senders   []*sender
	receivers []*receiver
	rooms     []*room

	ctx     context.Context // of everything
	end     context.CancelFunc
	calls   context.Context // of what is sent
	give    context.CancelFunc
	sending context.Context // of what is begun
	stop    context.CancelFunc
	busy    sync.WaitGroup // what sends
	all     sync.WaitGroup // everything else
	beside  atomic.Int64   // streams that are being read, and replies under way
	closing sync.Once
}

// Start connects all agents, joins the spaces and begins to send. It blocks
// until all are connected; ctx bounds that alone. The caller owes a call of Close, unless there is an error.
func Start(ctx context.Context, cfg Config) (*Run, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := &Run{cfg: cfg.withDefaults(), tally: newTally(), net: faultnet.New(), away: away{since: map[string]time.Time{}}}
	r.name = "soak-" + strings.ToLower(rand.Text()[:8])
	r.ctx, r.end = context.WithCancel(context.Background())
	r.calls, r.give = context.WithCancel(r.ctx)
	r.sending, r.stop = context.WithCancel(r.calls)
	r.people()
	if err := r.connect(ctx); err != nil {
		r.Close()
		return nil, err
	}
	r.begin()
	return r, nil
}

// Cut breaks any one connection of the run's without a word, besides those that Config.Cuts has cut.
func (r *Run) Cut() { r.net.CutOne() }

// Name returns what the ids of the run's agents and the names of its spaces begin with.
func (r *Run) Name() string { return r.name }

// begin starts everything that reads, then everything that sends.
func (r *Run) begin() {
	for _, a := range r.agents() {
		r.all.Go(func() { a.watch(r.ctx) })
	}
	for _, p := range r.receivers {
		r.all.Go(func() { p.listen(r.ctx) })
	}
	for _, s := range r.senders {
		r.all.Go(func() { s.listen(r.ctx) })
	}
	for _, room := range r.rooms {
		for _, m := range room.members {
			r.all.Go(func() { m.listen(r.ctx) })
		}
	}
	for _, s := range r.senders {
		s.begin()
	}
	if r.cfg.Cuts > 0 {
		r.all.Go(func() { cutAll(r.sending, r.net, r.cfg.Cuts) })
	}
}

// aside does what a run waits for beside the caller.
func (r *Run) aside(f func()) {
	r.beside.Add(1)
	r.all.Go(func() {
		defer r.beside.Add(-1)
		f()
	})
}

// Stop stops sending and cutting, and returns when each call has its answer. When ctx ends
// first, the calls are given up, and their outcome counts as unknown.
func (r *Run) Stop(ctx context.Context) error {
	r.stop()
	defer context.AfterFunc(ctx, r.give)()
	r.busy.Wait()
	return r.calls.Err()
}

// Settle returns when everything that is stored has arrived, and every stream
// has ended. When ctx ends first it returns its error: what is missing then counts as lost.
func (r *Run) Settle(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for r.owed() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d still under way: %w", r.owed(), ctx.Err())
		}
	}
	return nil
}

// owed returns how much has not arrived, or not ended.
func (r *Run) owed() (n int) {
	for _, l := range r.lines() {
		n += l.Owed()
	}
	return n + int(r.beside.Load())
}

// Close says goodbye for every agent, which leaves the spaces empty, and
// returns the result. What has not arrived by then is lost.
func (r *Run) Close() Report {
	r.closing.Do(func() {
		r.end()
		r.busy.Wait()
		r.all.Wait()
		for _, l := range r.lines() {
			l.Close()
		}
		r.goodbye()
	})
	return r.Progress()
}
