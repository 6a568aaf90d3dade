// Package demux hands what comes into one agent's mailbox to many readers, each at its own speed.
package demux

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/pump"
)

// Config sets up a Demux. A zero value means the default that its comment names.
type Config struct {
	// Serve reads one exchange, on a goroutine of its own: its return closes the exchange. It must return soon after
	// the exchange's Context is over. Required.
	Serve func(*Exchange)
	// Other gets what concerns no exchange: receipts, gaps, events of spaces, and cancels and aborts of what is not
	// served. Its argument is valid until it returns; it must not block, and may be called from two goroutines at a
	// time. Drops them if nil.
	Other func(edge.Delivery)
	// Share returns how much of Queue a queue may hold now, in parts of admission.FullShare; all of it if nil.
	Share func() int

	Queue    int           // bytes that wait for one reader in memory, or one part that is larger; 1 MiB
	Lagging  int           // streams that may lag at a time; 8
	Streams  int           // streams served at a time: one that begins beyond it is cancelled; 1024
	Whole    int           // messages that are no streams served at a time: those beyond it wait; 64
	Records  int64         // mailbox.max-records: an exchange half as many behind for Patience is given up; 4096
	Patience time.Duration // 5s
	Log      *slog.Logger  // discards if nil
}

func (c Config) withDefaults() Config {
	c.Queue = cmp.Or(c.Queue, 1<<20)
	c.Lagging = cmp.Or(c.Lagging, 8)
	c.Streams = cmp.Or(c.Streams, 1024)
	c.Whole = cmp.Or(c.Whole, 64)
	c.Records = cmp.Or(c.Records, 4096)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Other == nil {
		c.Other = func(edge.Delivery) {}
	}
	if c.Share == nil {
		c.Share = func() int { return admission.FullShare }
	}
	return c
}

// Demux splits the mailbox of one session into exchanges: each stream of a peer is one, and each message that is no
// stream. What comes in an exchange goes to its reader in order and without holes, and slows no other reader: a stream
// whose queue is full lags, reads the log by itself, and rejoins when it has caught up.
//
// The door's connection embeds a Demux, which is the Wake of its edge.Conn. It opens the session with the proof
// edge.ByReader, and with Slow as that of its edge.Hello. A part is acknowledged once its reader has asked for the next
// one, or is done, and so has every reader of what stands before it: should this edge die, the agent's next one
// delivers what is not acknowledged once more, marked as redelivered where it may have been given before.
type Demux struct {
	cfg     Config
	ctx     context.Context // ends with Close
	stop    context.CancelCauseFunc
	work    sync.WaitGroup
	session atomic.Pointer[edge.Session] // nil until Begin
	stats   Stats
	pump    pump.Pump // pulls from the session while there is something

	mu       sync.Mutex // guards the fields below, and every queue
	closed   bool
	position position
	overdue  *time.Timer // looks after a queue that is far behind; nil while none is
	held     int64       // bytes in all queues
	lagging  int         // exchanges that lag
	pace     pace
	names    names
	served   int   // streams that are served
	whole    int   // other messages that are served
	backlog  queue // of those that wait for their turn
	usher    bool  // a goroutine serves them
}

// Stats counts what a Demux did. All fields may be read at any time.
type Stats struct {
	Lagged   atomic.Int64 // times that a reader began to lag
	Rejoined atomic.Int64 // times that one has caught up
	GivenUp  atomic.Int64 // exchanges that were ended here, as their readers were too slow or too many
}

// New returns a Demux that does nothing until Begin. The caller owes it a call of Close.
func New(cfg Config) *Demux {
	d := &Demux{cfg: cfg.withDefaults(), pace: pace{room: make(chan struct{}, 1)}, names: newNames()}
	d.ctx, d.stop = context.WithCancelCause(context.Background())
	d.position.most = d.cfg.Records
	d.pump.Work, d.pump.Failed, d.pump.LastDelay, d.pump.All = d.drain, d.failed, lastDelay, &d.work
	d.backlog.init(d, nil)
	return d
}

// Begin lets what comes to a session flow, once. The session is used, not owned.
func (d *Demux) Begin(s *edge.Session) {
	d.session.Store(s)
	s.Begin()
}

// Stats returns the counters. They go on counting.
func (d *Demux) Stats() *Stats { return &d.stats }

// Held returns the bytes that wait for readers. It does not block.
func (d *Demux) Held() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.held
	for _, x := range d.names.streams {
		held += x.queue.rereads()
	}
	return held + d.backlog.rereads()
}

// errClosed is what readers get once the Demux is closed.
var errClosed = agora.Errorf(agora.Unavailable, "the session is over here")

// Close ends every exchange with UNAVAILABLE, tells no peer, as the session may go on elsewhere, and returns when every
// Serve has. It goes before the session's Closed. Idempotent.
func (d *Demux) Close() {
	d.mu.Lock()
	d.closed = true
	d.pump.Close()
	if d.overdue != nil {
		d.overdue.Stop()
	}
	d.stop(errClosed)
	d.mu.Unlock()
	d.work.Wait()
	d.mu.Lock()
	c := d.backlog.drop()
	d.mu.Unlock()
	if c != nil {
		c.Close()
	}
}

// background runs f, which is waited for, unless the Demux is closed. mu is held.
func (d *Demux) background(f func()) {
	if !d.closed {
		d.work.Go(f)
	}
}
