package broker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/framesize"
)

// frameBound is how large the frame may be in which a message comes to its receiver.
type frameBound struct {
	most  atomic.Int64 // bytes; 0 for any
	small atomic.Int64 // bytes of a message that need not be measured
}

// BoundFrames has lanes and Publish refuse a message of an agent with MESSAGE_TOO_LARGE when its receiver would get a
// frame of more than most bytes, whatever its door. Before the first call, the log's own limit is the only one.
func (b *Broker) BoundFrames(most int) {
	b.frames.small.Store(int64(framesize.Small(most)))
	b.frames.most.Store(int64(most))
}

// check returns MESSAGE_TOO_LARGE for a message whose frame would be too large for its receiver. It lets the cluster's
// own messages pass.
func (f *frameBound) check(m *agora.Message) *agora.Error {
	if int64(len(m.Body)+len(m.Meta.Head)) <= f.small.Load() {
		return nil
	}
	most := f.most.Load()
	if most == 0 || m.Kind > agora.Event || m.Part >= agora.Cancel {
		return nil
	}
	if size := framesize.Of(m) + len(m.Meta.Head); int64(size) > most {
		return agora.Errorf(agora.MessageTooLarge, "it would come to its receiver as a frame of up to %d bytes, which is larger than %d", size, most)
	}
	return nil
}

// Shares say how much of a stream may be taken: of what other tenants have not stored a tenant may store
// Tenant[0]/Tenant[1], and of that a principal Own[0]/Own[1] of what others of its tenant have not.
type Shares struct{ Tenant, Own [2]int64 }

// SetEdges says how many edges the cluster has: each lets in its part of what a principal and a tenant may store.
func (b *Broker) SetEdges(n int) { b.edges.Store(int64(max(n, 1))) }

// party is a sender whose share is counted.
type party struct{ tenant, principal string }

// streamShares is what the senders of this edge have stored in one stream, each principal's and each tenant's. It
// begins to count when the stream is a sixteenth full, and refuses when it is half full: who has stored more than its
// share then is refused, and others are served. What it counts is what was sent; shortly before it refuses somebody,
// and while it does, it asks the log how many records of that stand yet (see recount). Its methods may be called at the
// same time.
type streamShares struct {
	limit  int64 // bytes that the stream may keep; 0 for no limit
	shares Shares
	sent   atomic.Int64 // bytes that were sent by this edge since the stream's leader was asked
	kept   atomic.Int64 // bytes that the stream kept then

	mu      sync.Mutex // guards the fields below
	parties map[party]*stored
	tenants map[string]int64
	all     int64
	counted int // subjects of all parties
}

// stored is what a party has stored.
type stored struct {
	subjects map[string]*storedAt
	bytes    int64
}

// storedAt is what a party has stored under one subject.
type storedAt struct {
	records, bytes int64
	last           int64 // ticks of the last one
}

// mostCounted is how many subjects are told apart; what is stored under others counts under none, and is over when the
// party has stored nothing there for as long as records are kept.
const mostCounted = 1 << 18

// storedCost is about what a record takes beside its body.
const storedCost = 256

// fill returns how full the stream may be by now, where other edges do as this one does.
func (s *streamShares) fill(edges int64) int64 { return s.kept.Load() + edges*s.sent.Load() }

// grows reports whether much was sent since the stream's leader was asked.
func (s *streamShares) grows() bool { return s.limit > 0 && s.sent.Load() >= s.limit/16 }

// see takes in how much the stream keeps, asked when so much was sent.
func (s *streamShares) see(kept, sent int64) {
	s.kept.Store(kept)
	s.sent.Add(-sent)
}

// take counts a record that a party is about to send, and reports whether it may. doubts reports that the party nearly
// has its share, or more: then the log should be asked how much of that still stands.
func (s *streamShares) take(p party, subject string, bytes int, edges int64) (may, doubts bool) {
	n := int64(bytes) + storedCost
	full := s.fill(edges)
	if s.limit <= 0 || p.principal == "" || full < s.limit/16 {
		s.sent.Add(n)
		return true, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.parties[p]
	if u == nil {
		u = &stored{subjects: map[string]*storedAt{}}
		if s.parties == nil {
			s.parties, s.tenants = map[party]*stored{}, map[string]int64{}
		}
		s.parties[p] = u
	}
	if full >= s.limit/2 {
		more, room := u.bytes+n, s.share(p, edges)
		if doubts = more > room/8*7; more > room {
			return false, doubts
		}
	}
	s.sent.Add(n)
	s.add(p, u, subject, n)
	return true, doubts
}

// add counts bytes under a subject; mu is held.
func (s *streamShares) add(p party, u *stored, subject string, n int64) {
	at := u.subjects[subject]
	if at == nil && s.counted >= mostCounted {
		subject = ""
		at = u.subjects[subject]
	}
	if at == nil {
		at = new(storedAt)
		u.subjects[subject] = at
		s.counted++
	}
	at.records, at.bytes, at.last = at.records+1, at.bytes+n, agora.Ticks()
	s.change(p, u, n)
}

// change adds bytes to what a party has; mu is held.
func (s *streamShares) change(p party, u *stored, n int64) {
	u.bytes += n
	s.all += n
	if s.tenants[p.tenant] += n; s.tenants[p.tenant] <= 0 {
		delete(s.tenants, p.tenant)
	}
}

// share returns how much a party may have of what this edge may let in; mu is held.
func (s *streamShares) share(p party, edges int64) int64 {
	part := func(n int64, of [2]int64) int64 { return max(n, 0) * of[0] / of[1] }
	tenants := s.tenants[p.tenant]
	tenant := part(s.limit/edges-(s.all-tenants), s.shares.Tenant)
	return part(tenant-(tenants-s.parties[p].bytes), s.shares.Own)
}

// doubted returns the tenants of which a party nearly has its share, by what it has sent. Where the stream is not full
// any more, all is forgotten.
func (s *streamShares) doubted(edges int64) (tenants map[string]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.fill(edges)
	if full < s.limit/20 {
		s.parties, s.tenants, s.all, s.counted = nil, nil, 0, 0
	}
	tenants = map[string]struct{}{}
	for p, u := range s.parties {
		if full >= s.limit/2 && u.bytes > s.share(p, edges)/8*7 {
			tenants[p.tenant] = struct{}{}
		}
	}
	return tenants
}

// forget forgets what was stored longer ago than records are kept.
func (s *streamShares) forget(maxAge time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := agora.Ticks() - int64(maxAge)
	for p, u := range s.parties {
		for subject, at := range u.subjects {
			if at.last < old {
				s.drop(p, u, subject, at)
			}
		}
		if len(u.subjects) == 0 {
			delete(s.parties, p)
		}
	}
}

// drop forgets what a party has under a subject; mu is held.
func (s *streamShares) drop(p party, u *stored, subject string, at *storedAt) {
	delete(u.subjects, subject)
	s.counted--
	s.change(p, u, -at.bytes)
}

// recount corrects what the parties of a tenant have to what the log still keeps of it: counts are its records by
// subject, at a time in ticks or later.
func (s *streamShares) recount(tenant string, counts map[string]int64, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, u := range s.parties {
		if p.tenant != tenant {
			continue
		}
		for subject, has := range u.subjects {
			switch stand := counts[subject]; {
			case subject == "" || has.last >= at || stand >= has.records: // what came meanwhile may not be among them
			case stand == 0:
				s.drop(p, u, subject, has)
			default:
				left := has.bytes / has.records * stand
				s.change(p, u, left-has.bytes)
				has.records, has.bytes = stand, left
			}
		}
	}
}

// mayStore reports whether a party may store a record under a subject, and counts it.
func (w *watcher) mayStore(p party, subject string, bytes int) bool {
	may, doubts := w.use.take(p, subject, bytes, w.b.edges.Load())
	if doubts {
		w.ask(checkShares)
	}
	return may
}

// checkShares asks the log about the parties that may have stored more than their shares.
func (w *watcher) checkShares(now time.Time) error {
	edges, age := w.b.edges.Load(), w.b.cfg.MaxAge
	if now.Sub(w.forgot) > age/8 {
		w.use.forget(age)
		w.forgot = now
	}
	w.recounted = now
	for tenant := range w.use.doubted(edges) {
		ctx, cancel := context.WithTimeout(w.b.ctx, w.b.cfg.read)
		begun := agora.Ticks()
		all := jslog.Shard{Kind: w.kind, Shard: w.shard}.AllOf(tenant)
		counts, err := w.b.log.Counts(ctx, w.stream, all.Log())
		cancel()
		if err != nil {
			return err
		}
		live := make(map[string]int64, len(counts))
		for subject, n := range counts {
			live[jslog.LiveOf(subject)] = n
		}
		w.use.recount(tenant, live, begun)
	}
	return nil
}

// errShare refuses a party that has stored more than its share of a stream that is filling.
func errShare() *agora.Error {
	return &agora.Error{
		Code: agora.Unavailable, RetryAfter: time.Second,
		Message: "the message log is filling, and this principal or its tenant has stored as much of it as it may",
	}
}

const (
	takesNothingAfter = 5 * time.Second  // of refusals without a record that is stored
	takesNothingFor   = 30 * time.Second // since the last refusal: nobody has tried since, and it may be well again
)

// takes is whether a stream takes records, by what became of those that were sent last. A disk that is full and a
// leader that is gone show here alone: the connection to the log stands.
type takes struct {
	since atomic.Int64 // ticks at the first refusal since a record was stored; 0 for none
	last  atomic.Int64 // ticks at the last one
}

// refused notes that a record was not taken, or is not answered for longer than an election lasts.
func (t *takes) refused() {
	now := agora.Ticks()
	t.since.CompareAndSwap(0, now)
	t.last.Store(now)
}

// stored notes that a record was taken.
func (t *takes) stored() {
	if t.since.Load() != 0 {
		t.forget()
	}
}

// forget forgets what was refused, as another leader may have the stream: else an edge that refuses newcomers, of whom
// a record would come, waits for nothing.
func (t *takes) forget() { t.since.Store(0) }

// nothing reports whether the stream takes nothing now.
func (t *takes) nothing() bool {
	since, now := t.since.Load(), agora.Ticks()
	return since != 0 && time.Duration(now-since) >= takesNothingAfter && time.Duration(now-t.last.Load()) < takesNothingFor
}

// Stores returns UNAVAILABLE, with the stream's name, while nothing can be stored in a stream: for 5 s, all that this
// edge sent there was refused, or not answered for longer than an election lasts. It does not block, and knows nothing
// of streams to which nothing is sent.
func (b *Broker) Stores() error {
	for _, name := range b.streams.names() {
		if w := b.watchers[name]; w != nil && w.stores.nothing() {
			return agora.Errorf(agora.Unavailable, "nothing can be stored in %s: its servers have no leader, or no room", name)
		}
	}
	return nil
}
