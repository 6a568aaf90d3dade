// Package web is what every door over HTTP is made with: it lets requests in, bounds and checks their bodies, answers
// in one form, and ends what lasts when the edge goes away or who asked may not go on. Doors add what their paths mean.
package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/origin"
)

// Config sets up a Kit. The zero value is ready to use.
type Config struct {
	Pages     origin.Policy         // which web pages may ask
	Body      int                   // bytes of a request's body; 1 MiB
	Depth     int                   // objects and arrays that may stand in each other in a body; 64
	BodyTime  time.Duration         // how long a body may take to come; 20 s
	Write     time.Duration         // how long a peer may take for a piece of an answer; 30 s
	DrainRate int                   // answers that last which are ended per second when the edge drains; 1000
	Linger    time.Duration         // how long Close waits for what ends a request to be written; 1 s
	Admitted  func(context.Context) // told of the context of each request that was let in; may be nil
	Log       *slog.Logger          // discards if nil
}

func (c Config) withDefaults() Config {
	c.Body = cmp.Or(c.Body, 1<<20)
	c.Depth = cmp.Or(c.Depth, 64)
	c.BodyTime = cmp.Or(c.BodyTime, 20*time.Second)
	c.Write = cmp.Or(c.Write, 30*time.Second)
	c.DrainRate = cmp.Or(c.DrainRate, 1000)
	c.Linger = cmp.Or(c.Linger, time.Second)
	if c.Admitted == nil {
		c.Admitted = func(context.Context) {}
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// Kit is the HTTP of one edge, shared by its doors. Its methods may be called at the same time.
type Kit struct {
	cfg      Config
	node     node
	stats    *Stats
	refusals *edge.RefusalLog
	stop     context.CancelFunc
	watching sync.WaitGroup
	requests sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	open   map[*Exchange]struct{}
	closed bool
}

// node is what the kit knows of the edge.
type node struct {
	heartbeat time.Duration
	ready     func() error
	admit     func(context.Context, netip.Addr, func() (edge.Credentials, error)) (edge.Admission, error)
	open      func(context.Context) bool // nobody is asked for credentials
	strangers *admission.Strangers
	usage     *admission.Usage        // nil where nobody's bytes are counted
	check     func(*edge.Actor) error // nil while its credentials are good
	proxies   *edge.Proxies
}

// New returns a kit for a node. Close it after the node has drained.
func New(n *edge.Node, cfg Config) *Kit {
	c := n.Config()
	return open(cfg, node{
		heartbeat: c.Heartbeat, ready: n.Ready, admit: n.AdmitBy, check: (*edge.Actor).Check, proxies: c.Proxies,
		strangers: n.Shedder().Strangers(), usage: n.Usage(),
		open: func(ctx context.Context) bool {
			_, err := n.Authenticate(ctx, edge.Credentials{})
			return err == nil
		},
	})
}

func open(cfg Config, n node) *Kit {
	ctx, stop := context.WithCancel(context.Background())
	cfg = cfg.withDefaults()
	k := &Kit{cfg: cfg, node: n, stats: newStats(), refusals: edge.NewRefusalLog(cfg.Log), stop: stop, open: map[*Exchange]struct{}{}}
	k.watching.Go(func() { k.watch(ctx) })
	return k
}

// Stats returns the counters. They go on counting.
func (k *Kit) Stats() *Stats { return k.stats }

// Close lets nobody in any more, ends every request, and gives what tells their peers so a moment to be written.
// Idempotent.
func (k *Kit) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	for _, x := range k.exchanges(nil) {
		x.End(errGone)
	}
	k.stop()
	ended := make(chan struct{})
	k.watching.Go(func() {
		k.requests.Wait()
		close(ended)
	})
	late := time.NewTimer(k.cfg.Linger)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	}
}

// Wait returns when every request has ended, after [Kit.Close].
func (k *Kit) Wait() {
	k.requests.Wait()
	k.watching.Wait()
}

// enlist enters a request that was let in; false where the kit is closed.
func (k *Kit) enlist(x *Exchange) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.open[x] = struct{}{}
	k.requests.Add(1)
	k.stats.Open.Add(1)
	return true
}

// dismiss forgets a request that has been answered.
func (k *Kit) dismiss(x *Exchange) {
	k.mu.Lock()
	delete(k.open, x)
	k.mu.Unlock()
	k.stats.Open.Add(-1)
	k.requests.Done()
}

// exchanges returns the requests that are being answered, in room that nobody else uses.
func (k *Kit) exchanges(room []*Exchange) []*Exchange {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Grow(room[:0], len(k.open))
	for x := range k.open {
		all = append(all, x)
	}
	return all
}

// errGone is what is told to the one who asks, or still listens, while the edge goes away.
var errGone = &agora.Error{Code: agora.Unavailable, Message: "the edge is going away", RetryAfter: time.Second}

// NotFound answers requests for paths that nothing is at.
func (k *Kit) NotFound(w http.ResponseWriter, r *http.Request) { k.Nothing(w, r, nil) }

// Nothing is [Kit.NotFound] in the form of errors that a Path has; that of a [Fault] if nil.
func (k *Kit) Nothing(w http.ResponseWriter, r *http.Request, fault func(*http.Request, error, *agora.Error) (string, []byte)) {
	p := &Path{Fault: fault}
	if err := k.pages(w, r, k.cfg.Pages.Check(r)); err != nil {
		k.refuse(w, r, p, err)
		return
	}
	k.refuse(w, r, p, &Refusal{http.StatusNotFound, agora.Errorf(agora.InvalidRequest, "there is nothing at this path")})
}
