// Package call asks agents on behalf of callers who may have no session anywhere, and finds the answers: each in a box
// of its own in the log.
package call

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/presence"
)

// Config sets up a Registry.
type Config struct {
	Broker   *broker.Broker
	Presence *presence.Store
	Holder   presence.Holder                                   // the edge
	Reach    func(ctx context.Context, to agora.Address) error // whether a request for an agent may be stored
	Wrote    func(to agora.Address)                            // told of each that was
	Usage    *admission.Usage                                  // counts the calls that are open at this edge; one without limits of its own if nil
	// Known reports whether a caller is an agent, with a mailbox.
	Known    func(ctx context.Context, tenant string, id agora.AgentID) (bool, error)
	Delivers func() error                   // whether the edge may hand on what it has read
	Valid    func() (at time.Time, ok bool) // the edge's last good lease renewal, and whether the lease still holds
	// Pressed reports whether the mailbox of an agent is nearly full, or else whether it does not keep up with the
	// streams of one who writes to it.
	Pressed    func(from agora.AgentID, to agora.Address) (full, slow bool)
	MaxAge     time.Duration // of what the log keeps, and of what is known of a call with a name; 10m
	MaxRecords int64         // that a mailbox keeps
	Doubt      time.Duration // how long a request that is not known to be stored is stored again without a look for it; 45s
	Grace      time.Duration // how long a call with a name waits for its caller to come again; 30s
	Log        *slog.Logger  // discards if nil
}

// Registry is the calls that callers at one edge wait for. Its methods may be called at the same time.
type Registry struct {
	cfg   Config
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	work  sync.WaitGroup
	count Stats
	next  atomic.Uint64 // numbers answers

	mu      sync.Mutex                      // guards the fields below
	open    map[string]map[*Answer]struct{} // by tenant and box
	leaving []leaving                       // what presence is still to be told
	running bool                            // a goroutine tells it
	due     []pending                       // what is to be done later, the soonest first
	held    time.Time                       // when presence was last told of what is open
	closed  bool
}

// Stats counts calls. All fields may be read at any time.
type Stats struct {
	Open     atomic.Int64 // now
	Made     atomic.Int64 // since the start, those made again under their name included
	Answered atomic.Int64 // whose whole answer was read
	GivenUp  atomic.Int64 // whose callers went before
	Failed   atomic.Int64 // that ended with an error of the cluster's or the callee's: an abort, a timeout
	Refused  atomic.Int64 // over a limit
	Lost     atomic.Int64 // of edges that have died, ended here
}

const (
	linger    = time.Minute      // how long an answer that was read is still known: its sender may say it once more, not knowing that it was stored
	askTime   = 45 * time.Second // for storing a request: another edge may do the same so long, and both end well within the duplicate window
	overhead  = 256              // what a part of an answer counts beside its body, as for its sender
	trimBytes = 1 << 20          // read of an answer before it is dropped from its box
	pullBytes = 64 << 10         // taken from a box at a time
)

// New returns a Registry. Tick and Sweep are to be called now and then, Close at the end.
func New(cfg Config) *Registry {
	cfg.MaxAge = cmp.Or(cfg.MaxAge, 10*time.Minute)
	cfg.Grace = cmp.Or(cfg.Grace, 30*time.Second)
	cfg.Doubt = cmp.Or(cfg.Doubt, askTime)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Usage == nil {
		cfg.Usage = admission.NewUsage(admission.NewLiveLimits(admission.Limits{}))
	}
	r := &Registry{cfg: cfg, open: map[string]map[*Answer]struct{}{}, held: time.Now()}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Stats returns the counters. They go on counting.
func (r *Registry) Stats() *Stats { return &r.count }

// Request is what is asked.
type Request struct {
	// Message goes to the agent To, with a tenant, and is said to come From the caller. It is whole, unless the request
	// Streams. ID is the name by which the one who is asked knows the request; the call's own if empty. Meta.Deadline
	// is when the answer must be whole.
	Message agora.Message
	// Principal is who calls, by whose name the call counts beside that of its agent; empty where nobody has asked.
	Principal string
	// Streams says that Message is the beginning of a stream, to which [Answer.Say] adds the rest. The stream is called
	// as the request is, by a name that no other stream of the caller's to the addressee has meanwhile. Where the
	// caller goes before its end, or the deadline passes, it is aborted for who is asked, once. Such a call has no
	// Name.
	Streams bool
	// Patience is how long Say waits where it can't store a part now; 10s if 0.
	Patience time.Duration
	// Pace takes a part of so many bytes from the caller's rate, and returns how long Say is to wait first;
	// edge.Actor.Call sets it. May be nil.
	Pace func(bytes int) time.Duration
	// Name makes the call one that is done once: made again, by the same caller at any edge, it has the same answer.
	// Empty for none.
	Name string
	// Within is how long the answer may take until it is whole, where Message.Meta.Deadline is not set; 0 for as long
	// as it likes.
	Within time.Duration
	// Box is the call's id, by NewBox; one is made if empty. It is for who needs to know it before.
	Box string
	// Complete completes what of Message is not known yet, but for To and what makes its name stand for it: ID, Media,
	// Dialect and Body. It is called on a goroutine of its own while presence learns of the call, and its error is
	// that of the call where the request is to be stored. May be nil.
	Complete func(ctx context.Context, m *agora.Message) error
	// Checked says that what Message asks for was looked at already: see edge.Node.Screens.
	Checked bool
}

// NewBox returns the id of a call, which is that of the box for its answer: for a name always the same.
func NewBox(tenant string, caller agora.AgentID, name string) string {
	if name == "" {
		return "c" + rand.Text()
	}
	return "n" + digest(tenant, string(caller), name)
}

// digest is a hash of some strings, 160 bits of it.
func digest(all ...string) string {
	h := sha256.New()
	for _, s := range all {
		h.Write(strconv.AppendInt(nil, int64(len(s)), 10))
		h.Write([]byte{' '})
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// ErrGivenUp ends the context of a caller that gives a call up permanently: who was asked is told at once, also of a
// call with a name, unless others wait for the answer too.
var ErrGivenUp = errors.New("the call was given up")

// Start stores the request and returns its answer, of which nothing may have come yet. The caller owes it a call of
// Close. It takes a few round trips. Errors: AGENT_NOT_FOUND, AGENT_OFFLINE, RATE_LIMITED, UNAVAILABLE,
// MESSAGE_TOO_LARGE; INVALID_REQUEST where the name stands for another request, or for a stream; STREAM_ABORTED or
// TIMEOUT where the call of that name was given up, or ran out of time.
func (r *Registry) Start(ctx context.Context, q Request) (*Answer, error) {
	if q.Within > 0 && q.Message.Meta.Deadline.IsZero() {
		q.Message.Meta.Deadline = r.cfg.Broker.Now().Add(q.Within)
	}
	if q.Streams && q.Name != "" {
		return nil, agora.Errorf(agora.InvalidRequest, "a request that is a stream is done once whoever asks, and has no name to be made again by")
	}
	a, err := r.enter(q)
	if err != nil {
		return nil, err
	}
	if err := a.ask(ctx, q); err != nil {
		a.isGivenUp(ctx)
		a.Close()
		return nil, agora.AsError(err)
	}
	return a, nil
}

// enter counts a call in, if the limits allow.
func (r *Registry) enter(q Request) (*Answer, error) {
	a := newAnswer(r, q)
	if err := r.cfg.Usage.OpenCall(a.owner, a.callee()); err != nil {
		r.count.Refused.Add(1)
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.cfg.Usage.CloseCall(a.owner, a.callee())
		return nil, errShut
	}
	if q.Streams {
		a.stream = r.newStream(a)
	}
	k := key(a.call.Tenant, a.call.Box)
	if r.open[k] == nil {
		r.open[k] = map[*Answer]struct{}{}
	}
	r.open[k][a] = struct{}{}
	r.count.Open.Add(1)
	return a, nil
}

// exit counts a call out.
func (r *Registry) exit(a *Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg.Usage.CloseCall(a.owner, a.callee())
	k := key(a.call.Tenant, a.call.Box)
	if delete(r.open[k], a); len(r.open[k]) == 0 {
		delete(r.open, k)
	}
	r.count.Open.Add(-1)
}

func key(tenant, box string) string { return tenant + "\x00" + box }

// answers returns all that are open.
func (r *Registry) answers() []*Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Answer, 0, len(r.open))
	for _, of := range r.open {
		for a := range of {
			all = append(all, a)
		}
	}
	return all
}

// BoxOf returns the box that a reply of an agent without a session goes into: that of the open call which it names, or
// the only one of its peer. ok is false where there is none: then it is for the peer's mailbox. UNAVAILABLE while
// presence can't tell. A round trip, and one for each call that may be it.
func (r *Registry) BoxOf(ctx context.Context, m *agora.Message) (box agora.Address, ok bool, err error) {
	open, all, err := r.cfg.Presence.Calls.To(ctx, m.To.Tenant, m.From)
	if err != nil {
		return box, false, err
	}
	for _, c := range open {
		if c.From != m.To.Agent || m.Meta.Parent != "" && c.Request != m.Meta.Parent {
			continue
		}
		is, err := r.cfg.Presence.Calls.IsOpen(ctx, c.Tenant, c.Box)
		if err != nil {
			return box, false, err
		}
		if is && ok {
			return box, false, nil
		}
		if is {
			box, ok = agora.ToBox(c.Tenant, c.Box, c.From), true
		}
	}
	if !all && (!ok || m.Meta.Parent == "") {
		return box, false, presence.ErrIncomplete
	}
	return box, ok, nil
}

// Held adds up the bytes that are kept for callers: parts of answers that they have not taken.
func (r *Registry) Held(t *admission.Tally) {
	for _, a := range r.answers() {
		t.Add(a.owner, a.held())
	}
}

// Taken returns how much of an answer the callers here have taken, as the fastest of them; false where nobody waits for
// it here.
func (r *Registry) Taken(tenant, box string) (bytes int64, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a := range r.open[key(tenant, box)] {
		bytes, waits = max(bytes, a.taken.Load()), true
	}
	return bytes, waits
}

// Close ends every call: those with a name wait for their callers at other edges.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for _, a := range r.answers() {
		a.fail(errShut)
		a.Close()
	}
	ctx, cancel := context.WithTimeout(r.ctx, closeTime)
	defer cancel()
	if err := r.flush(ctx); err != nil {
		r.cfg.Log.Debug("calls that were open are left to other edges", "err", err)
	}
	r.mu.Lock()
	r.stop() // under the lock, so that nothing is begun after the Wait
	left := r.leaving
	r.mu.Unlock()
	for _, l := range left {
		if l.stream != nil {
			l.stream.lane.Close()
		}
	}
	r.work.Wait()
}

// background runs f, which ends with the Registry; false when that is over.
func (r *Registry) background(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return false
	}
	r.work.Go(f)
	return true
}

var errShut = &agora.Error{Code: agora.Unavailable, Message: "the edge is shutting down", RetryAfter: time.Second}

// closeTime bounds what is told to presence and log as the Registry closes.
const closeTime = time.Second
