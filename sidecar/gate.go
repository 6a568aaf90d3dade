package sidecar

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/p2p"
)

const (
	accessFresh = 2 * time.Second // for so long an edge's word on a peer is not asked for again
	accessStale = time.Minute     // and for so long it stands where no edge can be asked
	mostAsked   = 1024            // peers whose answer is kept
	listEvery   = time.Second     // edges are asked at most so often which of them there are
	askRate     = 20              // peers that edges are asked about in a second
)

// gate decides which peers of libp2p may ask the agent: edges of the cluster, which have decided for whom they do;
// those that the operator allows; and whom the cluster lets speak to the agent, of which it asks an edge. Nothing of
// what others say is read.
type gate struct {
	id    string // of the agent; set before the first peer comes
	edges *edges
	allow map[peer.ID]struct{}

	looking chan struct{} // holds a token while edges are asked which of them there are

	mu     sync.Mutex // guards the fields below
	known  map[peer.ID]struct{}
	open   bool      // the cluster asks nobody who they are
	listed time.Time // when edges were asked last which of them there are
	bound  time.Time // until when the peer is the agent's at the cluster
	asked  map[peer.ID]access
	flying map[peer.ID]*asking
	tokens float64 // for asking about peers
	filled time.Time
}

// access is what an edge has said of a peer.
type access struct {
	err error // nil: it may
	at  time.Time
}

// asking is a question about a peer that an edge has not answered yet.
type asking struct {
	done chan struct{} // closed when it is over
	err  error         // set before
}

// newGate returns a gate. INVALID_REQUEST for an id that is no peer's.
func newGate(e *edges, allow []string) (*gate, error) {
	g := &gate{edges: e, allow: map[peer.ID]struct{}{}, looking: make(chan struct{}, 1), asked: map[peer.ID]access{}, flying: map[peer.ID]*asking{}}
	for _, text := range allow {
		id, err := peer.Decode(text)
		if err != nil {
			return nil, agora.Errorf(agora.InvalidRequest, "%q is no peer id", text)
		}
		g.allow[id] = struct{}{}
	}
	return g, nil
}

// learn notes which edges there are.
func (g *gate) learn(list *edgeList) {
	known := map[peer.ID]struct{}{}
	for _, text := range list.peerIDs() {
		if id, err := peer.Decode(text); err == nil {
			known[id] = struct{}{}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known, g.open = known, list.Open
}

// boundUntil notes until when the cluster knows the peer as the agent's: until then no edge hands to it what is meant
// for another agent.
func (g *gate) boundUntil(t time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bound = t
}

// standing is what is known of a peer without asking.
func (g *gate) standing(p peer.ID) (known bool, err error) {
	if _, allowed := g.allow[p]; allowed {
		return true, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return true, nil
	}
	if _, edge := g.known[p]; edge {
		if time.Now().After(g.bound) {
			return true, p2p.NewFault(http.StatusForbidden, "the cluster does not know this peer as that of agent %q", g.id)
		}
		return true, nil
	}
	if a, is := g.asked[p]; is && time.Since(a.at) < accessFresh {
		return true, a.err
	}
	return false, nil
}

// admit returns nil where a peer may ask the agent, else the failure that it is told. It asks an edge about a peer that
// is not known, and may block for that.
func (g *gate) admit(ctx context.Context, p peer.ID) error {
	ctx, cancel := context.WithTimeout(ctx, edgeTime)
	defer cancel()
	g.look(ctx)
	if known, err := g.standing(p); known {
		return err
	}
	g.mu.Lock()
	q, others := g.flying[p], true
	if q == nil {
		q, others = &asking{done: make(chan struct{})}, false
		g.flying[p] = q
	}
	g.mu.Unlock()
	if !others {
		q.err = g.ask(ctx, p)
		g.mu.Lock()
		delete(g.flying, p)
		g.mu.Unlock()
		close(q.done)
	}
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return errUnasked
	}
}

// errUnasked is the failure of a peer of which no edge says anything.
var errUnasked = agora.Errorf(agora.Unavailable, "no edge says now whether this peer may speak to the agent")

// look asks edges which of them there are, unless that was done a moment ago: a new one is not to be taken for a
// stranger.
func (g *gate) look(ctx context.Context) {
	select {
	case g.looking <- struct{}{}:
		defer func() { <-g.looking }()
	case <-ctx.Done():
		return
	}
	g.mu.Lock()
	lately := time.Since(g.listed) < listEvery
	if !lately {
		g.listed = time.Now()
	}
	g.mu.Unlock()
	if lately {
		return
	}
	if list, err := g.edges.list(ctx); err == nil && list != nil {
		g.learn(list)
	}
}

// ask asks an edge whether a peer may speak to the agent, and keeps the answer. Where none can be asked, what was said
// within the last minute stands.
func (g *gate) ask(ctx context.Context, p peer.ID) error {
	said, err := accessAnswer{}, error(errUnasked)
	if g.spend() {
		said, err = g.edges.access(ctx, p.String(), g.id)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		if last, is := g.asked[p]; is && time.Since(last.at) < accessStale {
			return last.err
		}
		return &agora.Error{Code: agora.Unavailable, Message: errUnasked.Message, Cause: err}
	}
	var refusal error
	if !said.Allowed {
		refusal = p2p.NewFault(http.StatusForbidden, "this peer may not speak to agent %q: %s", g.id, said.Why)
	}
	if len(g.asked) >= mostAsked {
		maps.DeleteFunc(g.asked, func(_ peer.ID, a access) bool { return time.Since(a.at) >= accessFresh })
	}
	if len(g.asked) < mostAsked {
		g.asked[p] = access{refusal, time.Now()}
	}
	return refusal
}

// spend takes one of the questions about peers that edges are asked in a second.
func (g *gate) spend() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.tokens = min(askRate, g.tokens+now.Sub(g.filled).Seconds()*askRate)
	g.filled = now
	if g.tokens < 1 {
		return false
	}
	g.tokens--
	return true
}

// accessAnswer is what an edge says of a peer.
type accessAnswer struct {
	Allowed bool   `json:"allowed"`
	Why     string `json:"why"`
}
