package aip

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/demux"
)

// held is the nodes whose sessions an edge holds. The zero value is ready to use.
type held struct {
	mu  sync.Mutex // guards the field below
	all map[agora.Address]*node
}

// node is an agent or a toolbox that has registered, and whose session this edge holds: the edge has dialled it, and
// there is no other connection than the channel that calls use. It is its session's Conn.
type node struct {
	*demux.Demux
	registry  *registry
	at        agora.Address
	toolbox   bool
	channel   *channel
	losts     uint64 // what tells the channel's connection from later ones
	session   *edge.Session
	admission edge.Admission
	heard     atomic.Int64 // ticks when it last gave a sign of life
	renewed   time.Time    // when it was looked at what its address reaches; guarded by the mu of held
	over      sync.Once
	gone      chan struct{} // closed once its session is settled
	lost      func()        // ends it, as its connection is gone
	begun     chan struct{} // closed once session and at are set
	owner     admission.Owner
	counted   atomic.Bool // among the nodes of its owner

	via   *imports // the link that has brought it: then the channel is its gateway's; nil for one that has registered here
	offer *offer   // as which it was brought; of via's
}

// of returns a node that is held here; nil for none.
func (h *held) of(at agora.Address) *node {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[at]
}

func (h *held) put(n *node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[agora.Address]*node{}
	}
	h.all[n.at] = n
}

func (h *held) remove(n *node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[n.at] == n {
		delete(h.all, n.at)
	}
}

func (h *held) list() []*node {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*node, 0, len(h.all))
	for _, n := range h.all {
		all = append(all, n)
	}
	return all
}

// sweep deregisters the nodes that have been silent for too long.
func (h *held) sweep(timeout time.Duration) {
	for _, n := range h.list() {
		if n.silent() > timeout {
			n.end(edge.Silent, true)
		}
	}
}

// close ends the connections to all nodes; their sessions go on at other edges.
func (h *held) close() {
	for _, n := range h.list() {
		n.end(edge.Drained, false)
	}
}

// count counts the node among those of its owner. RATE_LIMITED where there are as many as may be.
func (n *node) count() error {
	err := n.registry.node.Usage().Take(admission.Nodes, n.owner, 1)
	n.counted.Store(err == nil)
	return err
}

// countAnyway counts a node that was another edge's, however many there are.
func (n *node) countAnyway() {
	n.registry.node.Usage().Add(admission.Nodes, n.owner, 1)
	n.counted.Store(true)
}

// uncount counts it no more. Idempotent.
func (n *node) uncount() {
	if n.counted.Swap(false) {
		n.registry.node.Usage().Give(admission.Nodes, n.owner, 1)
	}
}

// Alive implements edge.Hearer: the node has given a sign of life.
func (n *node) Alive() {
	n.heard.Store(agora.Ticks())
	select {
	case <-n.begun:
		n.session.Alive()
	default:
	}
}

// silent returns how long the node has given no sign of life.
func (n *node) silent() time.Duration { return time.Duration(agora.Ticks() - n.heard.Load()) }

// Notify implements edge.Conn: a ping is answered by whether the node answers at all.
func (n *node) Notify(what edge.Notice) {
	if what.Kind == edge.NoticePing {
		n.registry.background(func() {
			<-n.begun
			if n.answers(n.registry.ctx) {
				n.session.Pong(what.Data)
			}
		})
	}
}

// Close implements edge.Conn.
func (n *node) Close(why edge.Reason) { n.end(why.Cause, false) }

// probeTime is how long a node has to answer a probe.
const probeTime = time.Second

// answers reports whether a node answers a call now, whatever it answers: nodes need not know the service of health.
// One that a link has brought is there until its gateway says otherwise.
func (n *node) answers(ctx context.Context) bool {
	if n.via != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	_, err := grpc_health_v1.NewHealthClient(n.channel).Check(ctx, new(grpc_health_v1.HealthCheckRequest))
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return false
	}
	return true
}

// end ends the node's session here, once: permanently where it is deregistered, else others go on with it. It does not
// block.
func (n *node) end(cause edge.Cause, deregistered bool) {
	n.over.Do(func() {
		n.uncount()
		if n.via == nil {
			n.registry.held.remove(n)
			n.registry.stats.Nodes.Add(-1)
			n.channel.offLost(&n.lost)
		}
		n.registry.work.Go(func() {
			<-n.begun
			if n.via != nil {
				n.via.left(n)
			}
			defer close(n.gone)
			n.Demux.Close()
			n.session.Report(edge.Ending{Cause: cause})
			n.session.Closed(deregistered)
			n.registry.recent.doubt(n.at)
			n.channel.release()
			n.admission.Release()
		})
	})
}
