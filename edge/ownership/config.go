package ownership

import (
	"context"
	"log/slog"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// Config sets up an Owner. All of it is required, but for Search.
type Config struct {
	Holder    presence.Holder // the edge, and which life of it
	Broker    *broker.Broker
	Presence  *presence.Store
	Hub       *spaces.Hub
	Directory *directory.Directory
	Sessions  Sessions
	Peers     Peers

	Lease  time.Duration // how long an edge that is silent holds its sessions
	Search time.Duration // from presence being whole again to looking through the log for what it had lost; two leases and up to one more where it is 0
	Probe  time.Duration // how long the connection that holds an id has for a sign of life

	Ready      func() error                                 // why the edge takes no sessions now
	Superseded func(error)                                  // told, at most once, that another edge has taken the id and the lease; must not block
	SweepCalls func(context.Context) error                  // ends what callers at dead edges have asked
	Adopts     func(presence.Orphan) bool                   // whether this edge can dial an agent
	Adopt      func(context.Context, presence.Orphan) error // dials an agent and continues with its session; ErrAdopted where another edge does

	Context context.Context // ends when the edge is closed
	Go      func(func())    // runs what the edge waits for when it is closed; nothing after that
	Log     *slog.Logger
}

// Sessions are those that an edge holds, those included that only flush what is under way. They may be asked by many at
// a time.
type Sessions interface {
	All() []Session
	Of(at agora.Address, before uint64) []Session // those of an agent under epochs before the given one
	Agents() int                                  // that have sessions
}

// Session is one that an edge holds, under its claim.
type Session interface {
	Claim() presence.Claim
	Snapshot() presence.Held // as presence is to have it again, should it have lost it
	Over() bool              // its connection is gone
	Probe(ctx context.Context) bool
	Depose()                        // closes its connection, to which nothing more is given, as another edge holds the claim; must not block
	Resume()                        // has it deliver what was withheld; must not block
	Lose(ctx context.Context) error // tells presence that its connection is gone
	// LeaveAgain leaves those of some spaces once more that the session is not in any more, as it was just written
	// again that it is; must not block.
	LeaveAgain(spaces map[string]uint64)
	// HandOver closes its connection, flushes what is under way, and reports whether nothing was given up.
	HandOver(ctx context.Context) (clean bool, err error)
}

// Peers asks other edges, or this one. The error is broker.ErrNoEdge where nobody is there.
type Peers interface {
	// Ping asks for nothing but an answer.
	Ping(ctx context.Context, h presence.Holder) error
	// Probe asks whether the connection that holds an epoch gives a sign of life, and else whether its agent has said
	// goodbye.
	Probe(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64) (alive, leaving bool, err error)
	// HandOver asks whether nothing of an agent from before an epoch is left, and whether nothing was given up.
	HandOver(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64) (done, clean bool, err error)
	// End has the session of an epoch ended permanently.
	End(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64, why Ending) error
}

// Ending is why a session is ended permanently that an edge has dialled.
type Ending string

// The endings.
const (
	Evicted  Ending = "evict" // another agent answers at its address
	Departed Ending = "end"   // its agent has said goodbye elsewhere, or has failed
)

const (
	// HandoverTime bounds one try of a hand-over; the asker tries again.
	HandoverTime = 5 * time.Second
	// AskAgain is the time between two questions to a past holder, or about one.
	AskAgain = 100 * time.Millisecond

	answerTime = time.Second // for what another edge has at hand
)
