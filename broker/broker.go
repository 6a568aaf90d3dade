// Package broker keeps every message in JetStream and hands it to whoever
// listens for its address, in order and without gaps.
//
// A [Lane] sends: one record is being stored at a time, what arrives meanwhile
// gathers into the next. An [Inbox] receives: live messages come by core NATS,
// and whatever that missed is read from the log. The log is the truth; every
// live message is only a hint that it has grown.
//
// A lane may change hands between edges at any moment, with the old edge
// still sending. So each lane has a subject of its own beside the mailbox, the
// fence: a new holder writes its epoch there, and every record names the
// fence's sequence that it expects. The server refuses the old holder's records
// from then on, so what the new holder then reads of the log is final.
package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/scan"
)

// Broker is one edge's connection to the log. Its methods may be called at the same time.
type Broker struct {
	conn
	*scanner
	lifetime
	cfg   Config
	log   *jslog.Client
	clock *jslog.Clock
	ids   recordIDs
	reads readSlots

	streams    streamKeeper
	lanes      laneRegistry
	retrier    retrier
	coalescer  coalescer
	tails      tailNotifier
	dispatch   dispatcher
	watchers   watchers
	advisories *nats.Subscription // of new leaders
	answers    answerers
	callbacks  callbackQueue
	book       Book
	edges      atomic.Int64 // that the cluster has
	frames     frameBound

	count counters
}

// lifetime is how long a Broker's goroutines run.
type lifetime struct {
	ctx  context.Context // over when the Broker closes
	stop context.CancelFunc
	wg   sync.WaitGroup // every goroutine of the Broker
}

// loop calls step when there is a token in some, and again after the time that step returned, until the Broker closes.
func (l *lifetime) loop(some <-chan struct{}, step func() (next time.Duration)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-some:
		case <-timer.C:
		}
		timer.Reset(step())
	}
}

// readSlots bounds how many read the log at a time: who has put a token in does.
type readSlots struct{ lanes, inboxes chan struct{} }

// ErrDeposed means that a younger epoch holds the lane.
var ErrDeposed = jslog.ErrDeposed

// errClosed means that the Broker is closed.
var errClosed = errors.New("broker is closed")

const (
	lanesReading   = 64 // lanes that may read the log at a time
	inboxesReading = 3  // inboxes that may: thousands can fall behind at once, each answer takes memory, and a server takes what else comes by this connection only when it has read
)

// Connect opens the connection, creates or checks the streams and returns when
// both are ready or ctx is over. It fails with a sentence that says what to
// do when the servers can't hold what Config asks for (too few servers for Replicas,
// ShardBytes above the account's limit, streams of another number of shards, records too small),
// or don't let the edge in.
func Connect(ctx context.Context, cfg Config) (*Broker, error) {
	cfg = cfg.withDefaults()
	if cfg.Shards < 1 || cfg.Shards > maxShards {
		return nil, fmt.Errorf("%d shards: choose 1 to %d", cfg.Shards, maxShards)
	}
	b := &Broker{
		cfg:   cfg,
		ids:   recordIDs{life: nuid.Next()},
		reads: readSlots{lanes: make(chan struct{}, lanesReading), inboxes: make(chan struct{}, inboxesReading)},
	}
	b.clock = jslog.NewClock(cfg.Now, cfg.clock, cfg.Log)
	b.book.b = b
	b.edges.Store(1)
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.conn.init(&b.cfg, b.ctx, b.reconnected, b.dispatch.markDropped)
	b.dispatch.inboxBytes.Store(int64(cfg.InboxBytes))
	if err := b.open(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// open connects, makes the streams and starts the Broker's goroutines.
func (b *Broker) open(ctx context.Context) (err error) {
	b.callbacks.init()
	b.retrier.init()
	b.watchers = b.newWatchers()
	b.tails.init()
	b.coalescer.init()
	b.dispatch.init(&b.conn, &b.count.dropped)
	if err := b.connect(ctx); err != nil {
		return err
	}
	b.log = jslog.New(b.nc, b.js, b.within, jslog.Config{
		Read: b.cfg.read, Tail: b.cfg.tail, Retry: b.cfg.Retry, MaxAge: b.cfg.MaxAge, MaxRecords: b.cfg.MaxRecords,
		Clock: b.clock, Fenced: func() { b.count.fences.Add(1) }, Absent: b.watchers.nobody,
	})
	if err := b.checkMaxPayload(b.MaxRecord()); err != nil {
		return err
	}
	b.scanner = scan.New(b.log, b.scanConfig())
	b.streams.init(&b.conn, b.clock, b.log.AskTime, b.dispatch.markRestarted)
	if err := b.streams.ensureAll(ctx); err != nil {
		return err
	}
	b.log.SetClock(ctx, b.streams.names()[0])
	b.lanes.acks = b.nc.NewRespInbox() + "."
	acks, err := b.nc.Subscribe(b.lanes.acks+">", b.onAck)
	if err != nil {
		return err
	}
	// One answer at most for each record on its way: that bounds what can be pending.
	if err := acks.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	if err := b.watch(); err != nil {
		return err
	}
	b.wg.Go(b.callbacks.run)
	b.wg.Go(func() { b.loop(b.retrier.some, b.retrier.visit) })
	b.wg.Go(func() { b.coalescer.run(b.ctx) })
	b.wg.Go(func() { b.loop(b.tails.some, b.notifyTails) })
	b.dispatch.start(b.ctx, &b.wg)
	return nil
}

// reconnected runs on the connection's own goroutine and must not block.
func (b *Broker) reconnected() {
	b.watchers.ask(checkStream | checkInboxes)
	b.retrier.hurry()
}

// Close ends every lane, inbox and goroutine of the Broker and waits for them.
func (b *Broker) Close() {
	b.stop()
	b.link.Load().lost()
	for _, l := range b.lanes.all() {
		l.Close()
	}
	b.answers.stop()
	b.dispatch.close()
	b.callbacks.end()
	b.wg.Wait()
	b.callbacks.drain()
	b.callbacks.late.Wait()
	if b.nc != nil {
		b.nc.Close()
		<-b.closed
	}
}

// Streams returns the names of the streams that hold the log, and last that of the book.
func (b *Broker) Streams() []string { return b.streams.names() }

// Now returns the log's time, by which records are stamped and judged, on every edge the same: use it for every
// wall time that another edge reads. It is as near to the servers' as half a round trip to them, and continues when
// this machine's clock is set. Subtract such times from one another only: they say nothing to time.Since.
func (b *Broker) Now() time.Time { return b.clock.Now() }

// MaxRecord is the largest body in bytes that can be stored: the server's max_payload less room for headers.
func (b *Broker) MaxRecord() int { return b.log.MaxRecord() }

// signal puts a token into a channel of size one that may hold one already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// What is looked for in the log, and found there.
type (
	Search  = scan.Search
	Stored  = scan.Stored
	Finding = scan.Finding
	Unended = scan.Unended
	Mailbox = scan.Mailbox
)

// scanner gives the Broker its methods Find, Unended, Purge, Forget and Mailbox.
type scanner = scan.Scanner

func (b *Broker) scanConfig() scan.Config {
	return scan.Config{
		Shards: b.cfg.Shards, MaxRecords: b.cfg.MaxRecords, MaxAge: b.cfg.MaxAge, Duplicates: b.cfg.Duplicates, Retry: b.cfg.Retry,
		Turns: b.cfg.Turns, Clock: b.clock, Log: b.cfg.Log, NewID: func() string { _, id := b.ids.next(); return id }, Stored: b.noteStored,
	}
}

// EndLane ends a lane permanently, when its session ends: it fences, reads the log and
// stores one Abort (Body is the code, STREAM_ABORTED) for each open stream. Repeating it, at several edges at
// once, is harmless: the younger fence stops the older one's write, and then the reading shows what is stored.
// It fails with ErrDeposed when a younger epoch holds the lane, and with an *agora.Error when the
// log is full or could not be reached before ctx was over.
func (b *Broker) EndLane(ctx context.Context, cfg LaneConfig) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	return scan.End(ctx, b.scanner, scan.Lane{From: cfg.From, Session: cfg.Session, Epoch: cfg.Epoch, To: cfg.To, Dirty: cfg.Dirty, Open: cfg.Open})
}
