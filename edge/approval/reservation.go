package approval

import (
	"time"

	"github.com/agora-relay/agora"
)

// reservations are the places of approvals that are on their way to the book. Guarded by replica.mu.
type reservations struct {
	byBox    map[string]*reservation // by tenant and box
	counting int                     // how many of them the replica does not have yet
}

// reservation is calls of Ask for one approval.
type reservation struct {
	tenant string
	agent  agora.AgentID
	calls  int
	counts bool // the replica does not have the approval yet, which then counts as pending
}

func reservationKey(tenant, box string) string { return tenant + "\x00" + box }

// reserve keeps a place for a request until release is called, if the limits allow; one that stands needs no place.
func (r *replica) reserve(q *Approval, box string, cfg *Config) (release func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tenants.find(q.Tenant, box) != nil {
		return func() {}, nil
	}
	k := reservationKey(q.Tenant, box)
	w := r.reservations.byBox[k]
	if w == nil {
		if err := r.admit(q, cfg); err != nil {
			return nil, err
		}
		w = &reservation{tenant: q.Tenant, agent: q.Agent, counts: true}
		r.reservations.byBox[k] = w
		r.reservations.counting++
		r.tenants.get(q.Tenant).share(q.Agent).asking++
	}
	w.calls++
	return func() { r.release(k, w) }, nil
}

// admit returns why there is no place for a request; room is left for decisions. The caller holds mu.
func (r *replica) admit(q *Approval, cfg *Config) error {
	limit := func(text string) error {
		return &agora.Error{Code: agora.RateLimited, Message: text, RetryAfter: time.Second}
	}
	size := int64(len(q.Request)+len(q.Head)) + recordCost
	t, all := r.tenants.get(q.Tenant), cfg.Book.Bytes()
	s := t.share(q.Agent)
	defer r.tenants.drop(q.Tenant, q.Agent)
	switch {
	case s.pending+s.asking >= cfg.Each:
		return limit("too many approvals are pending for this agent")
	case int(r.inState(Pending).Load())+r.reservations.counting >= cfg.Pending:
		return limit("too many approvals are pending")
	case s.bytes+size > all/16:
		return limit("this agent has asked for too many approvals of late")
	case t.bytes+size > all/2:
		return limit("too many approvals were asked for of late")
	case r.bytes+size > all/4*3:
		return &agora.Error{Code: agora.Unavailable, Message: "no more approvals can be kept now", RetryAfter: time.Second}
	}
	return nil
}

func (r *replica) release(key string, w *reservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.calls--; w.calls > 0 {
		return
	}
	delete(r.reservations.byBox, key)
	r.uncount(w)
	r.tenants.drop(w.tenant, w.agent)
}

// uncount has a reservation count no more. The caller holds mu.
func (r *replica) uncount(w *reservation) {
	if w.counts {
		w.counts = false
		r.reservations.counting--
		r.tenants.get(w.tenant).share(w.agent).asking--
	}
}
