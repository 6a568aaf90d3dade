// Package ws is the door for Agora frames over WebSocket: it turns frames into
// the verbs of a session, and what the session has to tell into frames. No rule
// of the relay lives here.
//
// A connection has one goroutine, which reads: while the peer says little, one whose stack is
// small, as it only waits. A second one writes, only while
// there is something to write, and one write takes everything that is queued. Each
// tool that it calls has one more, until it has answered.
package ws

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/deliver"
	"github.com/agora-relay/agora/internal/latency"
	"github.com/agora-relay/agora/internal/origin"
	"github.com/agora-relay/agora/internal/turns"
	"github.com/agora-relay/agora/wire"
)

// Config sets up a door. The zero value is ready to use.
type Config struct {
	Pages      origin.Policy     // which web pages may connect
	MaxMessage int64             // bytes of a message beyond which the connection is closed; 32 MiB
	Answers    int               // bytes of queued answers beyond which the socket is read no further; 1 MiB
	MaxErrors  int               // errors in 10 s beyond which the connection is closed; 100
	Linger     time.Duration     // how long a closing connection may still take what is queued, and answer the close; 2 s
	Limits     wire.Limits       // of decoding
	Turns      *turns.Turns      // in which connections bind; the door's own if nil
	Carriers   *carrier.Carriers // by which tools are called; those that reach every agent by mail if nil
	Log        *slog.Logger      // discards if nil
}

func (c Config) withDefaults() Config {
	c.MaxMessage = cmp.Or(c.MaxMessage, 32<<20)
	c.Answers = cmp.Or(c.Answers, 1<<20)
	c.MaxErrors = cmp.Or(c.MaxErrors, 100)
	c.Linger = cmp.Or(c.Linger, 2*time.Second)
	if c.Turns == nil {
		c.Turns = new(turns.Turns)
	}
	if c.Carriers == nil {
		c.Carriers = carrier.New(nil)
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// node is what the door knows of the edge's settings, and its one way in.
type node struct {
	frame     int
	heartbeat time.Duration
	timeout   time.Duration
	admit     func(context.Context, netip.Addr, edge.Credentials) (edge.Admission, error)
	proxies   *edge.Proxies
	calls     func() int // calls of tools that one connection may have open now
}

// Door serves agents over WebSocket: an http.Handler for /ws.
type Door struct {
	cfg      Config
	node     node
	ids      *names
	wheel    *edge.Wheel // of the connections that have not said who they are
	stats    *Stats
	refusals *edge.RefusalLog

	work    sync.WaitGroup // every goroutine of every connection
	writers deliver.Writers
	inner   sync.Map // *inner by *conn, of those that were handed requests of other dialects

	mu     sync.Mutex // guards the fields below
	conns  map[*conn]struct{}
	closed bool
}

// New returns a door to the node. Close it after the node has drained.
func New(n *edge.Node, cfg Config) *Door {
	c := n.Config()
	return open(cfg, node{
		frame: c.Limits.Frame, heartbeat: c.Heartbeat, timeout: c.Timeout, admit: n.Admit, proxies: c.Proxies,
		calls: func() int { return n.Limits().Calls },
	})
}

func open(cfg Config, n node) *Door {
	n.frame = cmp.Or(n.frame, 1<<20)
	n.heartbeat = cmp.Or(n.heartbeat, 30*time.Second)
	n.timeout = cmp.Or(n.timeout, 60*time.Second)
	if n.proxies == nil {
		n.proxies = new(edge.Proxies)
	}
	if n.calls == nil {
		n.calls = func() int { return 1024 }
	}
	d := &Door{
		cfg: cfg.withDefaults(), node: n, ids: newNames(), conns: map[*conn]struct{}{},
		wheel: edge.NewWheel(min(time.Second, n.heartbeat/4)), stats: newStats(),
		refusals: edge.NewRefusalLog(cfg.withDefaults().Log),
	}
	d.writers.Answers, d.writers.Linger, d.writers.Work, d.writers.Log = d.cfg.Answers, d.cfg.Linger, &d.work, d.cfg.Log
	d.writers.Init()
	return d
}

// Stats returns the door's counters. They go on counting.
func (d *Door) Stats() *Stats { return d.stats }

// Close refuses newcomers and closes every connection with 1012; it does not
// wait. Idempotent.
func (d *Door) Close() {
	d.mu.Lock()
	if !d.closed {
		d.writers.End()
	}
	d.closed = true
	conns := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	d.mu.Unlock()
	for _, c := range conns {
		c.Close(goingAway)
	}
}

// Wait returns when every goroutine of the door has ended, after [Door.Close].
func (d *Door) Wait() {
	d.work.Wait()
	d.wheel.Close()
}

// admit says whether the door is open. What it admits is work until dismissed.
func (d *Door) admit() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.work.Add(1)
	return true
}

// enlist enters an upgraded connection. A door that was closed meanwhile closes it.
func (d *Door) enlist(c *conn) {
	d.stats.Connections.Add(1)
	d.stats.Accepted.Add(1)
	d.mu.Lock()
	d.conns[c] = struct{}{}
	closed := d.closed
	d.mu.Unlock()
	c.Attach(c)
	if closed {
		c.Close(goingAway)
	}
}

// dismiss forgets a connection whose goroutines have ended. Once it counts as gone, its place is free.
func (d *Door) dismiss(c *conn) {
	c.Release()
	d.mu.Lock()
	if _, ok := d.conns[c]; ok {
		delete(d.conns, c)
		d.stats.Connections.Add(-1)
	}
	d.mu.Unlock()
	d.work.Done()
}

var (
	_ http.Handler        = (*Door)(nil)
	_ edge.Conn           = (*conn)(nil)
	_ admission.Sheddable = (*conn)(nil)
)

// What a closed door says to connections and to newcomers.
var (
	goingAway   = edge.Reason{Cause: edge.Drained, Text: "the edge is going away"}
	errDraining = &agora.Error{Code: agora.Unavailable, Message: goingAway.Text, RetryAfter: time.Second}
)

// Stats counts what a door does. All fields may be read at any time.
type Stats struct {
	Connections atomic.Int64 // open now
	Accepted    atomic.Int64 // upgraded so far
	Refused     atomic.Int64 // refused before the upgrade
	FramesIn    atomic.Int64
	BytesIn     atomic.Int64
	FramesOut   atomic.Int64
	BytesOut    atomic.Int64
	Writes      atomic.Int64                 // system calls that wrote BytesOut
	Stalled     atomic.Int64                 // sockets closed because they took nothing
	Silent      atomic.Int64                 // connections without an agent closed because nothing came of them
	ToLog       latency.Histogram            // from a frame that was read to its verb having handed it to the log; of every 16th frame
	Errors      map[agora.Code]*atomic.Int64 // error frames by code; the map never changes
}

func newStats() *Stats {
	s := &Stats{Errors: map[agora.Code]*atomic.Int64{}}
	for _, c := range agora.Codes() {
		s.Errors[c] = new(atomic.Int64)
	}
	return s
}

func (s *Stats) fault(c agora.Code) {
	if n := s.Errors[c]; n != nil {
		n.Add(1)
	}
}

// names makes connection ids: "ws-" and digits, unique in the cluster. Two
// edges would have to draw the same number at their start and take a
// connection in the same microsecond to give one twice.
type names struct {
	edge uint64
	next atomic.Uint64
}

func newNames() *names { return &names{edge: rand.Uint64N(10_000)} }

func (n *names) name() string {
	return fmt.Sprintf("ws-%d%04d%03d", time.Now().UnixMicro(), n.edge, n.next.Add(1)%1000)
}
