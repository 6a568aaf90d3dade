package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/internal/latency"
)

// Broker is one edge's connection to the log. Its methods may be called at the same time.
type Broker struct {
	cfg    Config
	nc     *nats.Conn
	js     jetstream.JetStream
	life   string        // random, of this Broker alone: begins every message id of its records
	acks   string        // prefix of the subjects on which records are acknowledged
	next   atomic.Uint64 // numbers lanes and records
	back   chan struct{} // holds one token after the connection came back
	lives  atomic.Uint64 // attempts to connect again
	lostAt atomic.Int64  // ticks when the connection was lost; 0 while there is one
	closed chan struct{} // closed when the connection is closed for good
	count  counters

	toStored latency.Histogram

	ctx        context.Context // over when the Broker closes
	stop       context.CancelFunc
	wg         sync.WaitGroup // every goroutine of the Broker
	laneReads  chan struct{}  // bounds how many lanes read the log at a time
	inboxReads chan struct{}  // the same for inboxes

	clock     clock
	callbacks callbackQueue
	retrier   retrier
	watchers  watchers
	tails     tailNotifier

	coalescer coalescer
	book      Book

	advisories *nats.Subscription // of new leaders
	dispatch   dispatcher

	lanesMu sync.RWMutex // guards the fields below
	lanes   map[uint64]*Lane

	answersMu sync.Mutex // guards the fields below
	answers   map[*answerer]struct{}

	link   atomic.Pointer[link]  // the connection as it is now
	denied atomic.Pointer[error] // what the servers last said that this edge's user may not do

	inboxBytes atomic.Int64 // live bytes kept for one inbox

	streamsMu sync.Mutex // guards the field below
	streams   map[string]streamSeen
}

// ErrDeposed means that a younger epoch holds the lane.
var ErrDeposed = errors.New("a younger epoch holds the lane")

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
		cfg:        cfg,
		life:       nuid.Next(),
		back:       make(chan struct{}, 1),
		closed:     make(chan struct{}),
		laneReads:  make(chan struct{}, lanesReading),
		inboxReads: make(chan struct{}, inboxesReading),
		lanes:      make(map[uint64]*Lane),
		answers:    make(map[*answerer]struct{}),
		streams:    make(map[string]streamSeen),
	}
	b.clock.fixed, b.clock.local, b.clock.log = cfg.clock, cfg.Now, cfg.Log
	b.book.b = b
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.link.Store(newLink())
	b.inboxBytes.Store(int64(cfg.InboxBytes))
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
	b.dispatch.init(b)
	if err := b.connect(ctx); err != nil {
		return err
	}
	if err := b.checkMaxPayload(); err != nil {
		return err
	}
	if b.js, err = jetstream.New(b.nc); err != nil {
		return err
	}
	if err := b.ensureStreams(ctx); err != nil {
		return err
	}
	b.setClock(ctx)
	b.acks = b.nc.NewRespInbox() + "."
	acks, err := b.nc.Subscribe(b.acks+">", b.onAck)
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
	b.wg.Go(b.runRetrier)
	b.wg.Go(b.runTailNotifier)
	b.wg.Go(b.runCoalescer)
	b.dispatch.start(b)
	return nil
}

func (b *Broker) options(d *dialer, access []nats.Option) []nats.Option {
	opts := append(access,
		nats.Name(b.cfg.Name),
		nats.Timeout(dialTime),
		nats.SetCustomDialer(d),
		nats.FlusherTimeout(b.cfg.write), // of every write, under a lock that all who publish take
		nats.ReconnectWait(100*time.Millisecond),
		nats.ReconnectJitter(150*time.Millisecond, 150*time.Millisecond),
		nats.PingInterval(5*time.Second),
		nats.MaxPingsOutstanding(2),
		nats.SyncQueueLen(2*max(readBatch, auditBatch)), // made anew for each reading of the log
	)
	opts = append(opts, b.cfg.Options...)
	// The defaults would give up one day, and would send stale publishes late.
	return append(opts,
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // credentials that are refused today may be put right tomorrow
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(*nats.Conn, error) {
			b.lostAt.CompareAndSwap(0, agora.Ticks())
			b.link.Swap(newLink()).lost()
		}),
		// Called before each attempt, by whoever makes it; nil is the choice that is made without it.
		nats.ReconnectToServer(func([]nats.Server, nats.ServerInfo) (*nats.Server, time.Duration) {
			b.lives.Add(1)
			return nil, 0
		}),
		nats.ReconnectHandler(func(*nats.Conn) { b.reconnected() }),
		nats.ClosedHandler(func(*nats.Conn) { close(b.closed) }),
		nats.ErrorHandler(b.onError),
	)
}

// link is one life of the connection: what was asked in it is answered in it or never.
type link struct {
	ctx  context.Context
	lost context.CancelFunc
}

func newLink() *link {
	l := new(link)
	l.ctx, l.lost = context.WithCancel(context.Background())
	return l
}

// waiting returns a context for one question: it is over after d, and when the connection is lost.
func (b *Broker) waiting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(b.link.Load().ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// reconnected runs on the connection's own goroutine and must not block.
func (b *Broker) reconnected() {
	b.lostAt.Store(0)
	b.watchers.ask(checkStream | checkInboxes)
	signal(b.back)
	b.retrier.hurry()
}

// onError hears of what went wrong outside any call: mostly, that a channel of live messages was full.
func (b *Broker) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if sub != nil && errors.Is(err, nats.ErrSlowConsumer) {
		b.dispatch.markDropped(b, sub.Subject)
		return
	}
	if errors.Is(err, nats.ErrPermissionViolation) && !strings.Contains(err.Error(), "$SYS.") { // the servers' time may be kept from us
		b.denied.Store(&err)
	}
	if b.ctx.Err() == nil {
		b.cfg.Log.Warn("nats", "err", err)
	}
}

// Close ends every lane, inbox and goroutine of the Broker and waits for them.
func (b *Broker) Close() {
	b.stop()
	b.link.Load().lost()
	for _, l := range b.openLanes() {
		l.Close()
	}
	b.stopAnswers()
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

// Connected reports whether the log can be reached now.
func (b *Broker) Connected() bool { return b.nc.IsConnected() }

// Lost reports whether the connection has been away for longer than an election takes.
func (b *Broker) Lost() bool {
	at := b.lostAt.Load()
	return at != 0 && agora.Ticks()-at > int64(b.cfg.Election)
}

// Election returns how long the log may be away before what needs it is to be refused: longer than any election takes.
func (b *Broker) Election() time.Duration { return b.cfg.Election }

// Life numbers the connection to the log. The number grows after a connection was lost and before
// anything can come over the next one, so what was read under one life and is
// looked at under the same was never read behind an absence.
func (b *Broker) Life() uint64 { return b.lives.Load() }

// Reconnected returns a channel that holds one token after the connection came back. It is for one listener.
func (b *Broker) Reconnected() <-chan struct{} { return b.back }

// MaxRecord is the largest body in bytes that can be stored: the server's max_payload less room for headers.
func (b *Broker) MaxRecord() int { return int(b.nc.MaxPayload()) - headroom }

// Last returns the position of the last frame stored for to, read from the
// stream's leader; 0 when there is none.
func (b *Broker) Last(ctx context.Context, to agora.Address) (seq uint64, err error) {
	p := locate(to, b.cfg.Shards)
	m, err := b.lastOf(ctx, p.stream, p.log())
	if errors.Is(err, errNone) {
		return 0, nil
	}
	if err != nil {
		return 0, b.unavailable(err)
	}
	return m.end(), nil
}

// Reached reports whether the log may have come to a position of to: not where that is beyond all that was ever stored, by the word of the
// stream's leader, who is asked for as long as one that is new may know less than it is bound by. It costs one round trip where the position is to's last one, or before it.
func (b *Broker) Reached(ctx context.Context, to agora.Address, seq uint64) (bool, error) {
	p := locate(to, b.cfg.Shards)
	last, err := b.lastOf(ctx, p.stream, p.log())
	if err == nil && seq <= last.end() {
		return true, nil
	}
	for begun := agora.Ticks(); err == nil || errors.Is(err, errNone); err = pauseFor(ctx, retryPause) {
		var s streamState
		if s, err = b.state(ctx, p.stream, ""); err != nil {
			break
		}
		if seq>>agora.SeqShift <= s.last {
			return true, nil
		}
		if time.Duration(agora.Ticks()-begun) >= b.cfg.lag {
			return false, nil
		}
	}
	return false, b.unavailable(err)
}

// Unread returns how many records of to are stored after a position. It costs one Direct Get.
func (b *Broker) Unread(ctx context.Context, to agora.Address, after uint64) (records int, err error) {
	p := locate(to, b.cfg.Shards)
	r, err := b.readLog(ctx, query{stream: p.stream, subject: p.log(), seq: after>>agora.SeqShift + 1, batch: 1})
	if err != nil {
		return 0, b.unavailable(err)
	}
	return len(r.msgs) + r.pending, nil
}

// unavailable returns err as an agent may see it.
func (b *Broker) unavailable(err error) *agora.Error {
	return &agora.Error{Code: agora.Unavailable, Message: "the message log can't be reached now", RetryAfter: ledger.RetryAfter, Cause: err}
}

func (b *Broker) openLanes() []*Lane {
	b.lanesMu.RLock()
	defer b.lanesMu.RUnlock()
	lanes := make([]*Lane, 0, len(b.lanes))
	for _, l := range b.lanes {
		lanes = append(lanes, l)
	}
	return lanes
}

// unique returns a message id that no other record has, of whatever edge.
func (b *Broker) unique(n uint64) string {
	return b.life + "." + strconv.FormatUint(n, 36)
}

// signal puts a token into a channel of size one that may hold one already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
