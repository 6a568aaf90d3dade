package approval

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// entry is an approval in the replica.
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

// tenant is what one tenant has.
type tenant struct {
	boxes   map[string]*entry
	ids     map[string][]*entry                   // by the asker's own id
	to      map[agora.AgentID]map[*entry]struct{} // pending, by who is asked
	askers  map[agora.AgentID]*share
	pending int
	bytes   int64
}

// share is what one asker has of the book.
type share struct {
	pending int
	asking  int // those on their way to the book
	bytes   int64
}

// recordCost is about what an approval takes in the book, and in the replica, beside its texts.
const recordCost = 1 << 10

// How late at the soonest and at the latest an edge has an approval expire: mostly one of them does.
const (
	lateFirst = 20 * time.Millisecond
	lateLast  = time.Second
)

// stateIndex is where Approvals.now counts a state.
func stateIndex(s State) int {
	return slices.Index([]State{Pending, Approved, Denied, Expired}, s)
}

// tenant returns a tenant's; the caller holds mu for writing.
func (a *Approvals) tenant(name string) *tenant {
	t := a.tenants[name]
	if t == nil {
		t = &tenant{
			boxes: map[string]*entry{}, ids: map[string][]*entry{},
			to: map[agora.AgentID]map[*entry]struct{}{}, askers: map[agora.AgentID]*share{},
		}
		a.tenants[name] = t
	}
	return t
}

// share returns an asker's; the caller holds mu for writing, and calls drop when it is done.
func (t *tenant) share(agent agora.AgentID) *share {
	s := t.askers[agent]
	if s == nil {
		s = new(share)
		t.askers[agent] = s
	}
	return s
}

// drop forgets what has nothing.
func (a *Approvals) drop(name string, agent agora.AgentID) {
	t := a.tenants[name]
	if s := t.askers[agent]; s != nil && *s == (share{}) {
		delete(t.askers, agent)
	}
	if len(t.boxes) == 0 && len(t.askers) == 0 {
		delete(a.tenants, name)
	}
}

// find returns an approval in the replica; nil where it has none. The caller holds mu.
func (a *Approvals) find(tenant, box string) *entry {
	if t := a.tenants[tenant]; t != nil {
		return t.boxes[box]
	}
	return nil
}

// open takes in a record that opens an approval. One by the leader's word takes the place of an older one; one that is read in the order of the book does not, since what stands first stands. The
// caller holds mu.
func (a *Approvals) open(e *broker.Entry, byLeader bool) (*entry, error) {
	old := a.find(e.Tenant, e.Name)
	if old != nil && (old.opened.Seq >= e.Seq || !byLeader) {
		return old, nil
	}
	if e.Seq < a.first {
		return nil, errLost
	}
	asked, err := parseRequest(e)
	if err != nil {
		return nil, err
	}
	if old != nil {
		a.remove(old)
	}
	n := &entry{Approval: asked, box: e.Name, opened: *e, index: -1, size: int64(len(e.Body)) + recordCost}
	n.opened.Body = nil
	a.insert(n)
	return n, nil
}

// insert adds a pending one.
func (a *Approvals) insert(n *entry) {
	at, _ := slices.BinarySearchFunc(a.all, n, func(x, y *entry) int { return cmp.Compare(x.opened.Seq, y.opened.Seq) })
	a.all = slices.Insert(a.all, at, n)
	t := a.tenant(n.Tenant)
	t.boxes[n.box] = n
	t.ids[n.ID] = append(t.ids[n.ID], n)
	if t.to[n.To] == nil {
		t.to[n.To] = map[*entry]struct{}{}
	}
	t.to[n.To][n] = struct{}{}
	t.pending++
	t.share(n.Agent).pending++
	if w := a.asks[askKey(n.Tenant, n.box)]; w != nil {
		a.uncount(w)
	}
	a.weigh(n, n.size)
	a.now[stateIndex(Pending)]++
	a.pending.Add(1)
	n.wakes = n.Expires.Add(lateFirst + rand.N(lateLast))
	heap.Push(&a.due, n)
	if n.index == 0 {
		a.hurry()
	}
	a.note(n)
}

// weigh counts what an approval takes in the book.
func (a *Approvals) weigh(n *entry, bytes int64) {
	t := a.tenants[n.Tenant]
	a.bytes += bytes
	t.bytes += bytes
	t.share(n.Agent).bytes += bytes
}

// decided takes in a record that decides n; the first one stands. The caller holds mu.
func (a *Approvals) decided(n *entry, e *broker.Entry) error {
	if n.State != Pending || n.gone || e.Decides != n.opened.Seq {
		return nil
	}
	d, err := n.Approval.decide(e)
	if err != nil {
		return err
	}
	a.settle(n)
	n.Approval = d
	n.size += int64(len(e.Body))
	a.weigh(n, int64(len(e.Body)))
	a.now[stateIndex(d.State)]++
	a.note(n)
	a.mailSoon(d, later())
	return nil
}

// settle has n be pending no more.
func (a *Approvals) settle(n *entry) {
	t := a.tenants[n.Tenant]
	if delete(t.to[n.To], n); len(t.to[n.To]) == 0 {
		delete(t.to, n.To)
	}
	t.pending--
	t.share(n.Agent).pending--
	a.now[stateIndex(Pending)]--
	a.pending.Add(-1)
	if n.index >= 0 {
		heap.Remove(&a.due, n.index)
	}
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// remove forgets n: the book has it no more. The caller holds mu.
func (a *Approvals) remove(n *entry) {
	at, ok := slices.BinarySearchFunc(a.all, n, func(x, y *entry) int { return cmp.Compare(x.opened.Seq, y.opened.Seq) })
	if ok {
		a.all = slices.Delete(a.all, at, at+1)
	}
	a.unlink(n)
}

// unlink takes n out of everything but the list.
func (a *Approvals) unlink(n *entry) {
	if n.gone {
		return
	}
	n.gone = true
	if n.State == Pending {
		a.settle(n)
		a.lose(n)
	} else {
		a.now[stateIndex(n.State)]--
	}
	a.weigh(n, -n.size)
	t := a.tenants[n.Tenant]
	delete(t.boxes, n.box)
	if t.ids[n.ID] = slices.DeleteFunc(t.ids[n.ID], func(x *entry) bool { return x == n }); len(t.ids[n.ID]) == 0 {
		delete(t.ids, n.ID)
	}
	a.drop(n.Tenant, n.Agent)
}

func (a *Approvals) hurry() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// dueHeap is what is pending, the next to expire first.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].wakes.Before(h[j].wakes) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for package heap.
func (h *dueHeap) Push(x any) {
	n := x.(*entry)
	n.index = len(*h)
	*h = append(*h, n)
}

// Pop is for package heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	n.index = -1
	return n
}
