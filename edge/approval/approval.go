// Package approval keeps what agents ask approval for, and who has decided it, in the cluster's book: asked once,
// decided once, whatever edge is asked.
package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/latency"
)

// State is how an approval stands.
type State string

// The states.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Denied   State = "denied"
	Expired  State = "expired" // nobody has decided in time: it is not approved
)

// Approval is what an agent has asked approval for, and how that was decided. Its slices are shared, and not to be
// changed.
type Approval struct {
	Tenant  string
	Seq     uint64          // where it stands in the book: those asked later stand behind it
	ID      string          // as the asker names it: msg_id of its request
	Agent   agora.AgentID   // who asks
	Owner   string          // the principal that asks as that agent; empty where it has no name, or an edge has stored it that knows of none
	To      agora.AgentID   // who is asked; agora.Cluster for any operator
	Request json.RawMessage // payload of the request
	Head    []byte          // what the asker's dialect says beside it
	Trace   string
	Asked   time.Time // by the log's clock, as are the other times
	Expires time.Time

	State   State
	By      string // agent or principal that has decided; Cluster where nobody has in time
	Decided time.Time
	Note    string
	Answer  json.RawMessage // payload of the envelope that has decided; nil where none did
	Mail    bool            // nobody waited for the decision: it is mailed to the asker
}

// Verdict is a decision.
type Verdict struct {
	Approved bool
	By       string // who decides
	Note     string
	Answer   json.RawMessage // payload of the envelope that decides; nil for none
}

// ErrDecided is what a [DecidedError] is.
var ErrDecided = errors.New("the approval is decided already")

// DecidedError says that somebody else has decided, or otherwise, or that it was too late. To an agent it is
// INVALID_REQUEST.
type DecidedError struct{ Stands Approval }

func (e *DecidedError) Error() string {
	return "the approval is " + string(e.Stands.State) + " already"
}

// Is reports whether target is [ErrDecided].
func (e *DecidedError) Is(target error) bool { return target == ErrDecided }

// Unwrap returns the error as an agent may see it.
func (e *DecidedError) Unwrap() error { return agora.Errorf(agora.InvalidRequest, "%s", e.Error()) }

// Config sets up Approvals. Book is needed; the zero value of all else means its default.
type Config struct {
	Book    *broker.Book
	Now     func() time.Time // the log's clock: [broker.Broker.Now]; needed
	Expiry  time.Duration    // after which what nobody has decided is not approved; 10m, and never more than half of what the book keeps
	Pending int              // limits.cluster.approvals: approvals pending in all of the cluster, of which tenants and principals have their shares; 10,000
	Each    int              // limits.approvals: pending of one asker; 256
	Log     *slog.Logger     // discards if nil
}

// Bounds of one approval, in bytes.
const (
	MaxRequest = 256 << 10 // Request, Head and Trace together
	MaxAnswer  = 64 << 10  // Answer
	MaxNote    = 4 << 10   // Note
	maxID      = 1 << 10
	maxBy      = 1 << 10
)

// Approvals are those of all of the cluster, as one edge knows them. Its methods may be called at the same time. What
// is asked and decided survives every edge, since the book has it; each edge has a replica of that, within the book's
// own bounds.
type Approvals struct {
	cfg       Config
	ctx       context.Context // ends with Close
	stop      context.CancelFunc
	work      sync.WaitGroup
	replica   *replica
	outbox    *outbox
	total     Totals
	toDecided latency.Histogram
}

// Totals count since the start what was decided through this edge, so that they can be added up over edges. They may be
// read at any time.
type Totals struct{ Asked, Approved, Denied, Expired atomic.Int64 }

// Counts are how many approvals are in each state now, in all of the cluster.
type Counts struct{ Pending, Approved, Denied, Expired int64 }

// New returns Approvals, and begins to read the book. The caller owes it a call of Close.
func New(cfg Config) *Approvals {
	cfg.Expiry = min(cmp.Or(cfg.Expiry, 10*time.Minute), cfg.Book.Keep()/2)
	cfg.Pending = cmp.Or(cfg.Pending, 10_000)
	cfg.Each = cmp.Or(cfg.Each, 256)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	a := &Approvals{cfg: cfg, outbox: newOutbox(cfg.Now, cfg.Log)}
	a.replica = newReplica(a.outbox, cfg.Log)
	a.ctx, a.stop = context.WithCancel(context.Background())
	a.work.Go(a.follow)
	a.work.Go(a.expire)
	a.work.Go(func() { a.outbox.deliver(a.ctx) })
	return a
}

// Close ends everything that waits, with UNAVAILABLE, and waits for what continues.
func (a *Approvals) Close() {
	a.stop()
	a.work.Wait()
}

// Totals returns the counters. They go on counting.
func (a *Approvals) Totals() *Totals { return &a.total }

// ToDecided returns how long it took from asking to deciding, of what was decided through this edge.
func (a *Approvals) ToDecided() *latency.Histogram { return &a.toDecided }

// Counts returns how many there are.
func (a *Approvals) Counts() Counts {
	n := func(s State) int64 { return a.replica.inState(s).Load() }
	return Counts{n(Pending), n(Approved), n(Denied), n(Expired)}
}

// Synced returns nil while the replica has all that the book had when it was looked at last, a second or two ago at
// most; else UNAVAILABLE.
func (a *Approvals) Synced() error { return a.replica.synced() }

var (
	errLoading = &agora.Error{Code: agora.Unavailable, Message: "approvals are being loaded", RetryAfter: time.Second}
	errClosing = &agora.Error{Code: agora.Unavailable, Message: "the edge is shutting down", RetryAfter: time.Second}
	errLost    = &agora.Error{Code: agora.Unavailable, Message: "the approval is lost: ask for it again", RetryAfter: time.Second}
)

// unknown is NOT_FOUND for an approval.
func unknown(id string) error {
	return agora.Errorf(agora.NotFound, "approval '%s' does not exist", clip(id))
}

// clip returns a name that fits an error.
func clip(s string) string {
	const most = 64
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
