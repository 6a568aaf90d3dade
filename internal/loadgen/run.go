package loadgen

import (
	"context"
	"crypto/rand"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

// Run is a load on a cluster. One goroutine calls Measure and Close, in this
// order; any may call Progress meanwhile.
type Run struct {
	cfg   Config
	name  string // begins every agent's id
	began time.Time

	agents   []*agent
	lines    []*line
	pacers   []*pacer
	meter    *meter // what arrives
	receipts *meter // of what is sent with receipts
	behind   *meter // how late pacers are
	notes    notes

	storm *storm // nil where there is none

	stop   chan struct{}
	gaveUp atomic.Bool // what could not be sent in time is left
	over   atomic.Bool
}

// Start connects all agents. It blocks until they are, and what they need is there; ctx bounds that alone.
// The caller owes a call of Close, unless there is an error.
func Start(ctx context.Context, cfg Config) (*Run, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := newRun(cfg)
	r.people()
	if err := r.connect(ctx); err != nil {
		r.Close()
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func newRun(cfg Config) *Run {
	return &Run{
		cfg: cfg.withDefaults(), name: "bench-" + strings.ToLower(rand.Text()[:8]), began: time.Now(),
		stop: make(chan struct{}), meter: newMeter(), receipts: newMeter(), behind: newMeter(),
	}
}

// Name returns what the ids of the run's agents begin with.
func (r *Run) Name() string { return r.name }

// stopped reports whether senders are to stop.
func (r *Run) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// line returns the line that a stamp names, nil if the run has none.
func (r *Run) line(s Stamp) *line {
	if s.Line >= len(r.lines) {
		return nil
	}
	return r.lines[s.Line]
}

// Measure sends, and measures from when every line has carried something and is warm on. It returns when the duration
// is over, or ctx has ended, and what was sent has arrived or the time to settle has passed. The result tells only of
// what was measured.
func (r *Run) Measure(ctx context.Context, servers Watched) Result {
	r.prime(ctx)
	var senders sync.WaitGroup
	start := r.flatOut
	if r.cfg.Rate > 0 {
		start = r.paced
	}
	if r.cfg.Warmup > 0 {
		start(&senders)
		r.fill(ctx)
		pause.For(ctx, r.cfg.Warmup)
	}
	before, self, from := servers.Usage(), selfUsage(), now()
	r.window(from, math.MaxInt64)
	if r.cfg.Warmup == 0 { // all that is sent counts
		start(&senders)
	}
	pause.For(ctx, r.cfg.Duration)
	end := now()
	r.window(from, end)
	after, spent := servers.Usage(), selfUsage()-self
	close(r.stop)
	r.settle(&senders)
	return r.result(time.Duration(max(end-from, 1)), before, after, spent)
}

// window sets what is measured.
func (r *Run) window(from, until int64) {
	for _, m := range []*meter{r.meter, r.receipts} {
		m.until.Store(until)
		m.from.Store(from)
	}
}

// settle waits until all that is to be measured is sent and has arrived, as long as it may.
func (r *Run) settle(senders *sync.WaitGroup) {
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Settle)
	defer cancel()
	unblocked := context.AfterFunc(ctx, r.giveUp)
	senders.Wait()
	unblocked()
	for r.owed() > 0 && ctx.Err() == nil {
		pause.For(ctx, 10*time.Millisecond)
	}
}

// giveUp has every sender end, also one that blocks.
func (r *Run) giveUp() {
	r.gaveUp.Store(true)
	for _, l := range r.lines {
		_ = l.from.conn.SetWriteDeadline(time.Unix(1, 0)) // a socket that is closed blocks nobody
	}
}

// owed returns how many arrivals are missing of all that was sent.
func (r *Run) owed() (n int64) {
	for _, l := range r.lines {
		n += (l.sent.Load() - l.never.Load()) * l.copies
	}
	return n - r.meter.counts().total
}

// sent returns how many of the measured messages were sent and not refused, and how many arrivals they are to have.
func (r *Run) sent() (sent, expected int64) {
	for _, l := range r.lines {
		n := l.measured.Load()
		sent += n
		expected += (n - l.refused.Load()) * l.copies
	}
	return sent, expected
}

// Close says goodbye for every agent and waits for all that the run has started.
func (r *Run) Close() {
	r.over.Store(true)
	_ = each(r.agents, func(a *agent) error {
		if a.conn != nil {
			_ = a.conn.Close() // what has ended before is closed
		}
		a.reader.Wait()
		return nil
	})
}
