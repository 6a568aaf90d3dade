// Package spaces holds the rules of rooms: names, capacity, join, leave, and
// the fan-out: one upstream per space and edge, handed to its members here.
package spaces

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// Config sets up a Hub. Broker and Presence are used, not owned.
type Config struct {
	Broker         *broker.Broker
	Presence       *presence.Store
	NoCreate       bool         // spaces.auto-create off: a join does not make a public space
	DeltaThreshold int          // bytes of a published text beyond which it goes out in deltas; 16 KiB
	QueueBytes     int          // kept for one member before it reads the log by itself; 256 KiB
	Log            *slog.Logger // discards if nil

	WholeRoster int // spaces.whole-roster: members up to which each change names all of them; 256
	RosterBytes int // that their ids may take then, as JSON has them: less than a frame; 512 KiB
}

func (c Config) withDefaults() Config {
	c.DeltaThreshold = cmp.Or(c.DeltaThreshold, 16<<10)
	c.WholeRoster = cmp.Or(c.WholeRoster, 256)
	c.RosterBytes = cmp.Or(c.RosterBytes, 512<<10)
	c.QueueBytes = cmp.Or(c.QueueBytes, 256<<10)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// Hub is the spaces of one edge. Its methods may be called at the same time.
type Hub struct {
	cfg   Config
	ctx   context.Context // over when the hub is closed
	stop  context.CancelFunc
	pumps sync.WaitGroup
	queue atomic.Int64 // bytes that one member's queue may keep

	mu     sync.Mutex // guards the fields below, and refs of every fan
	fans   map[agora.Address]*fan
	closed bool
}

// New returns a hub that has no places yet. Whoever made it calls Close.
func New(cfg Config) *Hub {
	ctx, stop := context.WithCancel(context.Background())
	h := &Hub{cfg: cfg.withDefaults(), ctx: ctx, stop: stop, fans: make(map[agora.Address]*fan)}
	h.queue.Store(int64(h.cfg.QueueBytes))
	return h
}

// Close ends every fan-out and waits for it. Places that are still open give
// nothing more; their owners close them. Idempotent.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	fans := h.fans
	h.fans = nil
	h.mu.Unlock()
	for _, f := range fans {
		f.close()
	}
	h.stop()
	h.pumps.Wait()
}

// Where says where a member begins. The zero value: at what is stored from now on.
type Where struct {
	HasLast  bool // the client told the last position it has
	Last     uint64
	NoCreate bool // a join does not make a public space
	History  int  // a join replays that many events first; at most 4096, and not with HasLast

	After  uint64    // position known to have arrived, where a session continues; 0 for none
	Since  time.Time // when After is 0: events stored at or after this time; zero for none
	Lost   bool      // the client told a position that is none of the space's: a gap comes first
	Marked bool      // what was stored before now may have been given already: mark it Redelivered
}

// from returns where the log is read from; ok is false for "from now on".
func (w Where) from() (from broker.From, ok bool) {
	from = broker.From{Lost: w.Lost}
	switch {
	case w.HasLast:
		from.After = w.Last
	case w.After > 0:
		from.After = w.After
	case !w.Since.IsZero():
		from.Time = w.Since
	default:
		return from, w.Lost // then all that there is
	}
	return from, true
}

// Open opens the place of a session that is a member already (resume). It
// neither blocks nor touches presence, and tells no roster. With nothing
// known in w the place begins at the log's end as it is found soon after.
// wake is called as for [Hub.Join].
func (h *Hub) Open(tenant, space string, self agora.AgentID, w Where, wake func()) *Place {
	p := h.place(agora.ToSpace(tenant, space), self, wake)
	p.told.marked = w.Marked
	from, ok := w.from()
	p.begin(from, ok, false)
	return p
}

// place returns a new place in the space's fan-out, which it opens if it is
// the first one. It gives nothing before its begin.
func (h *Hub) place(to agora.Address, self agora.AgentID, wake func()) *Place {
	h.mu.Lock()
	f := h.fans[to]
	if f == nil {
		f = newFan(h, to, h.closed)
		if !h.closed {
			h.fans[to] = f
		}
	}
	f.refs++
	h.mu.Unlock()
	p := &Place{fan: f, self: self, wake: wake, at: outside}
	f.hold(p)
	f.pump.Wake()
	return p
}

// release is called once by each place; the last one closes the fan-out.
func (h *Hub) release(f *fan) {
	h.mu.Lock()
	f.refs--
	over := f.refs == 0
	if over && h.fans[f.to] == f {
		delete(h.fans, f.to)
	}
	h.mu.Unlock()
	if over {
		f.close()
	}
}

// fan returns the space's fan-out when there is one here.
func (h *Hub) fan(to agora.Address) *fan {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fans[to]
}

// fault returns err, from presence or the broker, as an agent may see it.
func fault(space string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, presence.ErrFull):
		return agora.Errorf(agora.SpaceFull, "Space '%s' is full", space)
	case errors.Is(err, presence.ErrNoSpace):
		return noSpace(space)
	case errors.Is(err, presence.ErrDeposed):
		return &agora.Error{Code: agora.Unavailable, Message: "the session goes on elsewhere", Cause: err}
	}
	return agora.AsError(err)
}

func noSpace(space string) error {
	return agora.Errorf(agora.SpaceNotFound, "Space '%s' does not exist", space)
}

// isMissing tells the error of a space that does not exist.
func isMissing(err error) bool { return errors.Is(err, presence.ErrNoSpace) }

// Squeeze has the queue of each member keep no more than share/whole of
// Config.QueueBytes from now on; a member that has more reads the log by
// itself when it gets there.
func (h *Hub) Squeeze(share, whole int) {
	h.queue.Store(int64(h.cfg.QueueBytes) * int64(share) / int64(whole))
}

// room is how many bytes the queue of one member may keep.
func (h *Hub) room() int { return int(h.queue.Load()) }

// Held returns, by tenant, the bytes of events that are kept for members, each counted
// once however many members wait for it, and of those not handed on yet. It
// does not block; its cost is that of a look at every member.
func (h *Hub) Held() map[string]int64 {
	h.mu.Lock()
	fans := make([]*fan, 0, len(h.fans))
	for _, f := range h.fans {
		fans = append(fans, f)
	}
	h.mu.Unlock()
	held := map[string]int64{}
	for _, f := range fans {
		held[f.to.Tenant] += f.held()
	}
	return held
}

// span is a part of what a fan has handed on, in bytes since it was opened.
type span struct{ from, to int64 }

// held returns what the fan's members and its inbox keep.
func (f *fan) held() (held int64) {
	f.mu.Lock()
	spans := make([]span, 0, len(f.members))
	for p := range f.places {
		if s, ok := p.span(); ok {
			spans = append(spans, s)
		}
	}
	inbox := f.inbox
	f.mu.Unlock()
	if inbox != nil {
		held = int64(inbox.Held())
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var done int64
	for _, s := range spans {
		held += max(s.to-max(s.from, done), 0)
		done = max(done, s.to)
	}
	return held
}

// span returns which part of what was handed on waits in p's queue.
func (p *Place) span() (s span, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return s, false
	}
	first := p.queue[0]
	return span{first.ends - int64(first.size()), p.queue[len(p.queue)-1].ends}, true
}

// Held returns the bytes that p alone keeps, while it lags and reads the log
// by itself; what it waits for with others is in [Hub.Held]. It does not block.
func (p *Place) Held() int {
	p.mu.Lock()
	inbox := p.inbox
	p.mu.Unlock()
	if inbox == nil {
		return 0
	}
	return inbox.Held()
}
