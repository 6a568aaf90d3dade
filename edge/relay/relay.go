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
	// Reassert writes a session to presence again, which does not know its claim, and reports whether that holds. It
	// may block; nil where nobody can.
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

// closedStreams is what is to be taken out of presence. The lock of its Relay guards it.
type closedStreams struct {
	waiting map[closedStream]presence.Claim // for the next Tick; made when something comes into it
	leaving map[closedStream]presence.Claim // being taken out by a Tick
	left    chan struct{}                   // closed once those are out
	owing   map[*streamSet]struct{}         // with owed streams
}

// closedStream names a stream, or a request, of which presence is to know no more.
type closedStream struct {
	session string
	to      agora.Address
	stream  string
}

// closedBatch is the ended streams of one lane.
type closedBatch struct {
	claim   presence.Claim
	to      agora.Address
	streams []string
}

func (r *Relay) streamClosed(c presence.Claim, to agora.Address, stream string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	put(&r.closed.waiting, closedStream{c.Session, to, stream}, c)
}

// streamOwed has every Tick ask whether presence is to forget streams that a session's agent has not open.
func (r *Relay) streamOwed(s *streamSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	put(&r.closed.owing, s, struct{}{})
}

// settleOwed closes the streams whose ends the log has by now, and those that did not begin.
func (r *Relay) settleOwed() {
	r.mu.Lock()
	owing := r.closed.owing
	r.closed.owing = nil
	r.mu.Unlock()
	for s := range owing {
		if s.settleOwed() {
			r.streamOwed(s)
		}
	}
}

// settleOwed does so for one session, and reports whether streams are left. The session's next holder settles
// what is left when it ends here.
func (s *streamSet) settleOwed() (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	for k := range s.takeSettled() {
		s.relay.streamClosed(*s.cfg.Claim, k.to, k.stream)
	}
	return len(s.owed) > 0
}

// takeSettled returns the owed streams that are not open in the log, and will not be: they are owed no more. mu is
// held.
func (s *streamSet) takeSettled() (settled map[streamKey]*stream) {
	for k, st := range s.owed {
		if st.state != streamBegins && !s.mayBeOpen(k) {
			delete(s.owed, k)
			put(&settled, k, st)
		}
	}
	return settled
}

// mayBeOpen reports whether the log may have to get the end of a stream; mu is held. A lane that was put aside owes
// nothing.
func (s *streamSet) mayBeOpen(k streamKey) bool {
	l := s.lanes[k.to]
	return l != nil && l.MayBeOpen(k.stream)
}

// streamOpens keeps in presence a stream that begins, though one of its name has ended, or was refused, since the last
// Tick. Where a Tick is taking that out, it returns a channel that is closed when it is out; else nil.
func (r *Relay) streamOpens(c *presence.Claim, to agora.Address, stream string) <-chan struct{} {
	k := closedStream{c.Session, to, stream}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.closed.waiting, k)
	if _, ok := r.closed.leaving[k]; ok {
		return r.closed.left
	}
	return nil
}

// closeStreams takes out of presence what has ended since the last call.
func (r *Relay) closeStreams(ctx context.Context) {
	batches, left := r.takeClosed()
	for _, c := range batches {
		if err := r.cfg.Presence.Lanes.CloseStreams(ctx, c.claim, c.to, c.streams); err != nil {
			// The log shows that they ended; presence only matters where retention cut the log.
			r.cfg.Log.Debug("ended streams stay in presence", "agent", c.claim.Agent, "err", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(left)
	if r.closed.left == left {
		r.closed.leaving, r.closed.left = nil, nil
	}
}

// CloseRefused takes the session's streams out of presence that were refused and are not open in the log, as a Tick
// does, and returns when they are out: where retention has cut the log, the session's next holder takes for open
// what presence knows. Call it once all is flushed. It takes a round trip for each lane with such a stream. What has
// come to its end is left to the Tick, and so are answers of calls: they may be said again, and be known by what
// presence has of them.
func (s *Sender) CloseRefused(ctx context.Context) error {
	s.mu.Lock()
	refused := s.takeSettled()
	for k := range refused {
		if k.to.IsBox() {
			delete(refused, k)
			s.relay.streamClosed(*s.cfg.Claim, k.to, k.stream)
		}
	}
	s.mu.Unlock()
	closed := make(map[closedStream]presence.Claim, len(refused))
	for k := range refused {
		closed[closedStream{s.cfg.Claim.Session, k.to, k.stream}] = *s.cfg.Claim
	}
	err := s.relay.closesNone(ctx, s.cfg.Claim.Session)
	for _, c := range batchesOf(closed) {
		if err == nil {
			err = s.relay.cfg.Presence.Lanes.CloseStreams(ctx, c.claim, c.to, c.streams)
		}
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for k, st := range refused {
			put(&s.owed, k, st)
		}
		s.relay.streamOwed(&s.streamSet)
	}
	return err
}

// closesNone waits until no Tick takes streams of a session out of presence.
func (r *Relay) closesNone(ctx context.Context, session string) error {
	r.mu.Lock()
	var left <-chan struct{}
	for k := range r.closed.leaving {
		if k.session == session {
			left = r.closed.left
		}
	}
	r.mu.Unlock()
	if left == nil {
		return nil
	}
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeClosed returns what a Tick is to take out of presence, and the channel that it closes then.
func (r *Relay) takeClosed() (batches []closedBatch, left chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	closed := r.closed.waiting
	r.closed = closedStreams{leaving: closed, left: make(chan struct{}), owing: r.closed.owing}
	return batchesOf(closed), r.closed.left
}

// batchesOf returns streams by lane.
func batchesOf(closed map[closedStream]presence.Claim) (batches []closedBatch) {
	type lane struct {
		session string
		to      agora.Address
	}
	at := map[lane]int{}
	for c, claim := range closed {
		k := lane{c.session, c.to}
		i, ok := at[k]
		if !ok {
			i = len(batches)
			at[k] = i
			batches = append(batches, closedBatch{claim: claim, to: c.to})
		}
		batches[i].streams = append(batches[i].streams, c.stream)
	}
	return batches
}
