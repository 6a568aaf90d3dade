package approval

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
)

// reservations are the places of approvals that are on their way to the book. Guarded by replica.mu.
type reservations struct {
	byBox map[string]*reservation // by tenant and box
}

// reservation is calls of Ask for one approval.
type reservation struct {
	tenant string
	agent  agora.AgentID
	owner  string
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
		w = &reservation{tenant: q.Tenant, agent: q.Agent, owner: q.Owner, counts: true}
		r.reservations.byBox[k] = w
		r.use(w.tenant, w.agent, w.owner, usage{asking: 1})
	}
	w.calls++
	return func() { r.release(k, w) }, nil
}

// admit returns why there is no place for a request; room is left for decisions. The caller holds mu.
func (r *replica) admit(q *Approval, cfg *Config) error {
	held := r.held(q)
	pending := admission.Bound{Agent: int64(cfg.Each), Whole: int64(cfg.Pending)}
	if level, full := pending.Refuses(held.of(usage.open), 1); full {
		return admission.Approvals.Refusal(level)
	}
	size := int64(len(q.Request)+len(q.Head)) + recordCost
	if level, full := admission.BookBound(cfg.Book.Bytes()).Refuses(held.of(usage.stored), size); full {
		return admission.ApprovalBytes.Refusal(level)
	}
	return nil
}

// admitVerdict returns why a decision of n can't be as long as it is: what is short may always be said, and what is not
// counts to who has asked.
func (r *replica) admitVerdict(n *entry, v *Verdict, cfg *Config) error {
	size := int64(len(v.Note) + len(v.Answer))
	if size <= shortVerdict {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if level, full := admission.BookBound(cfg.Book.Bytes()).Refuses(r.held(n.Approval).of(usage.stored), size); full {
		return admission.ApprovalBytes.Refusal(level)
	}
	return nil
}

// shortVerdict is how many bytes a decision may have, its note and its answer, whatever is stored: there is room for as
// many as may be pending.
const shortVerdict = 512

func (r *replica) release(key string, w *reservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.calls--; w.calls > 0 {
		return
	}
	delete(r.reservations.byBox, key)
	r.uncount(w)
	r.tenants.drop(w.tenant)
}

// uncount has a reservation count no more. The caller holds mu.
func (r *replica) uncount(w *reservation) {
	if w.counts {
		w.counts = false
		r.use(w.tenant, w.agent, w.owner, usage{asking: -1})
	}
}
