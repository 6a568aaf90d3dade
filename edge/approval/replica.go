package approval

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// replica is what one edge has of the book. Its methods may be called at the same time, but for those whose caller
// holds mu.
type replica struct {
	log     *slog.Logger
	outbox  *outbox         // has what is decided
	byState [4]atomic.Int64 // how many are in each state; written under mu

	mu           sync.RWMutex // guards the fields below
	tenants      tenants
	all          []*entry // by where they stand in the book
	used         usage    // by everybody
	deadlines    deadlines
	reservations reservations
	watches      watches
	first        uint64        // nothing stands below it
	upTo         uint64        // of the book is read
	failed       error         // why no more is
	looked       chan struct{} // closed at the next look into the book
}

func newReplica(o *outbox, log *slog.Logger) *replica {
	return &replica{
		log: log, outbox: o, tenants: tenants{}, deadlines: deadlines{sooner: make(chan struct{}, 1)},
		reservations: reservations{byBox: map[string]*reservation{}}, watches: watches{}, failed: errLoading, looked: make(chan struct{}),
	}
}

// entry is an approval in the replica. Guarded by replica.mu, but for box and opened, which never change.
type entry struct {
	*Approval               // as it stands; replaced as a whole
	box       string        // its name in the book
	opened    broker.Entry  // by which it is decided; without its body
	size      int64         // in the book, about
	wakes     time.Time     // when this edge has it expire
	index     int           // in the heap; -1 where it is in none
	changed   chan struct{} // closed when it is decided, or gone; nil while nobody waits
	gone      bool          // it is not in the replica any more
}

// recordCost is about what an approval takes in the book, and in the replica, beside its texts.
const recordCost = 1 << 10

// inState counts the approvals in a state.
func (r *replica) inState(s State) *atomic.Int64 {
	return &r.byState[slices.Index([]State{Pending, Approved, Denied, Expired}, s)]
}

// entry takes in what is read of the book.
func (r *replica) entry(e broker.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if e.Decides == 0 {
		_, err = r.open(&e, false)
	} else if n := r.tenants.find(e.Tenant, e.Name); n != nil {
		err = r.decide(n, &e)
	}
	if err != nil {
		r.log.Warn("approval skipped", "seq", e.Seq, "err", err)
	}
}

// forget drops what the book has no more.
func (r *replica) forget(first uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = first
	k := 0
	for ; k < len(r.all) && r.all[k].opened.Seq < first; k++ {
		r.unlink(r.all[k])
	}
	if k == 0 {
		return
	}
	rest := make([]*entry, len(r.all)-k, len(r.all)-k+16) // so that what is forgotten can be freed
	copy(rest, r.all[k:])
	r.all = rest
}

// read notes how far the book was read.
func (r *replica) read(upTo uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed, r.upTo = nil, max(r.upTo, upTo); err != nil {
		r.failed = agora.AsError(err)
	}
	close(r.looked)
	r.looked = make(chan struct{})
}

// opened takes in what this edge has stored.
func (r *replica) opened(e *broker.Entry) (Approval, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.open(e, true)
	if err != nil {
		return Approval{}, agora.AsError(err)
	}
	return *n.Approval, nil
}

// decided takes in that e decides n, and returns what stands.
func (r *replica) decided(n *entry, e *broker.Entry) (*Approval, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.gone { // it is forgotten meanwhile
		return nil, errLost
	}
	if err := r.decide(n, e); err != nil {
		return nil, agora.AsError(err)
	}
	return n.Approval, nil
}

// absent takes in that the book does not have n.
func (r *replica) absent(n *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !n.gone {
		r.remove(n)
	}
}

// refreshed takes in an approval and its decision, where there is one, by the word of the book's leader.
func (r *replica) refreshed(opened, decision *broker.Entry) (*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.open(opened, true)
	if err == nil && decision != nil {
		err = r.decide(n, decision)
	}
	if err != nil {
		return nil, agora.AsError(err)
	}
	return n, nil
}

// open takes in a record that opens an approval. One by the leader's word takes the place of an older one; one that is
// read in the order of the book does not, since what stands first stands. The caller holds mu.
func (r *replica) open(e *broker.Entry, byLeader bool) (*entry, error) {
	old := r.tenants.find(e.Tenant, e.Name)
	if old != nil && (old.opened.Seq >= e.Seq || !byLeader) {
		return old, nil
	}
	if e.Seq < r.first {
		return nil, errLost
	}
	asked, err := parseRequest(e)
	if err != nil {
		return nil, err
	}
	if old != nil {
		r.remove(old)
	}
	n := &entry{Approval: asked, box: e.Name, opened: *e, index: -1, size: int64(len(e.Body)) + recordCost}
	n.opened.Body = nil
	r.insert(n)
	return n, nil
}

// insert adds a pending one. The caller holds mu.
func (r *replica) insert(n *entry) {
	at, _ := slices.BinarySearchFunc(r.all, n, inBook)
	r.all = slices.Insert(r.all, at, n)
	r.tenants.get(n.Tenant).add(n)
	if w := r.reservations.byBox[reservationKey(n.Tenant, n.box)]; w != nil {
		r.uncount(w)
	}
	r.use(n.Tenant, n.Agent, n.Owner, usage{pending: 1, bytes: n.size})
	r.inState(Pending).Add(1)
	r.deadlines.add(n)
	r.watches.changed(n)
}

// inBook orders approvals by where they stand in the book.
func inBook(x, y *entry) int { return cmp.Compare(x.opened.Seq, y.opened.Seq) }

// decide takes in a record that decides n; the first one stands. The caller holds mu.
func (r *replica) decide(n *entry, e *broker.Entry) error {
	if n.State != Pending || n.gone || e.Decides != n.opened.Seq {
		return nil
	}
	d, err := n.Approval.decide(e)
	if err != nil {
		return err
	}
	r.endPending(n)
	n.Approval = d
	n.size += int64(len(e.Body))
	r.use(n.Tenant, n.Agent, n.Owner, usage{bytes: int64(len(e.Body))})
	r.inState(d.State).Add(1)
	r.watches.changed(n)
	r.outbox.add(d, later())
	return nil
}

// endPending has n be pending no more. The caller holds mu.
func (r *replica) endPending(n *entry) {
	r.tenants.get(n.Tenant).endPending(n)
	r.use(n.Tenant, n.Agent, n.Owner, usage{pending: -1})
	r.inState(Pending).Add(-1)
	r.deadlines.remove(n)
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// remove forgets n: the book has it no more. The caller holds mu.
func (r *replica) remove(n *entry) {
	if at, ok := slices.BinarySearchFunc(r.all, n, inBook); ok {
		r.all = slices.Delete(r.all, at, at+1)
	}
	r.unlink(n)
}

// unlink takes n out of everything but the list. The caller holds mu.
func (r *replica) unlink(n *entry) {
	if n.gone {
		return
	}
	n.gone = true
	if n.State == Pending {
		r.endPending(n)
		r.watches.lost(n)
	} else {
		r.inState(n.State).Add(-1)
	}
	r.use(n.Tenant, n.Agent, n.Owner, usage{bytes: -n.size})
	r.tenants.get(n.Tenant).remove(n)
	r.tenants.drop(n.Tenant)
}
