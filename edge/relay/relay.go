// Package relay holds the rules of addressed messages: whether the addressee
// is there, which streams are open, how much may be under way, what a deadline
// does, and what happens to open streams when their sender goes away.
package relay

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/presence"
)

// Config is what all senders of an edge share.
type Config struct {
	Broker     *broker.Broker
	Presence   *presence.Store
	MailboxOff bool             // an agent without a session is AGENT_OFFLINE
	MaxRecords int64            // of a mailbox
	MaxAge     time.Duration    // of a record
	Answer     time.Duration    // that presence has for what a message waits for: its agent is to hear then, not when the library gives up; 3s
	Usage      *admission.Usage // counts the streams that senders have open; one with the default limits if nil
	InFlight   int              // bytes under way of one sender
	Valid      func() (at time.Time, ok bool)
	// Reassert writes a session to presence again, which does not know its claim, and reports whether that holds. It may block; nil where nobody can.
	Reassert func(ctx context.Context, c presence.Claim) (held bool, err error)
	// Confirmed asks the edge that holds an agent how far the agent has got with its mailbox. It may block.
	Confirmed func(ctx context.Context, to agora.Address, holder presence.Holder) (Confirmed, error)
	// Taken asks the edges whose callers wait for the answer in a box how much of it they have taken, and whether any
	// wait. It may block.
	Taken func(ctx context.Context, box agora.Address) (bytes int64, waits bool, err error)
	Log   *slog.Logger
}

// Confirmed is how far an agent has got with its mailbox.
type Confirmed struct {
	Cursor uint64          // position up to which it is known to have read
	Slow   []agora.AgentID // senders whose streams it does not keep up with, though it does with others': their lanes alone are slowed
}

// Relay is what an edge knows of the addressees its agents send to. Its
// methods may be called at the same time.
type Relay struct {
	cfg     Config
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	checks  sync.WaitGroup // running pressure checks
	pending pendingSends

	mu      sync.Mutex // guards the fields below
	peers   map[agora.Address]*peer
	senders map[*laneSet]struct{}
	trimmed time.Time     // when Tick last had senders put lanes aside
	closed  closedStreams // to be taken out of presence with the next Tick
	touched time.Time     // when Tick last told presence who was written to
}

// New returns a Relay. Close it when no sender is left.
func New(cfg Config) *Relay {
	ctx, stop := context.WithCancel(context.Background())
	cfg.Answer = cmp.Or(cfg.Answer, 3*time.Second)
	if cfg.Usage == nil {
		cfg.Usage = admission.NewUsage(admission.NewLiveLimits(admission.Limits{}))
	}
	return &Relay{cfg: cfg, ctx: ctx, stop: stop, peers: map[agora.Address]*peer{}, senders: map[*laneSet]struct{}{}, touched: time.Now()}
}

// Close waits for what runs in the background.
func (r *Relay) Close() {
	r.mu.Lock()
	r.stop() // under the lock, so that no look starts after the Wait
	r.mu.Unlock()
	r.checks.Wait()
}

// Tick does what is done behind: it takes ended streams out of presence,
// notes who was written to, and forgets addressees nobody writes to. The
// node calls it about once a second; it blocks for a few round trips.
func (r *Relay) Tick(ctx context.Context) {
	r.settleOwed()
	r.closeStreams(ctx)
	r.trim(time.Now())
	// A record lives for MaxAge, so a mark within a quarter of it is there
	// before anything that it stands for has expired.
	if time.Since(r.touched) < r.cfg.MaxAge/4 {
		return
	}
	r.touched = time.Now()
	if err := r.cfg.Presence.Addressees.Touch(ctx, r.written()); err != nil {
		r.cfg.Log.Warn("who was written to could not be noted", "err", err)
	}
}

// written returns the agents that got something since the last call, and how
// long ago they got the last of it, and forgets those that got nothing.
func (r *Relay) written() map[agora.Address]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := agora.Ticks()
	to := map[agora.Address]time.Duration{}
	for a, p := range r.peers {
		wrote := p.wrote.Swap(0)
		switch {
		case wrote != 0:
			to[a] = time.Duration(now - wrote)
		case p.lanes.Load() == 0:
			delete(r.peers, a)
		}
	}
	return to
}
