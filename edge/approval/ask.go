package approval

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// Ask stores what an agent asks approval for, once for each tenant, agent and id: asked again, it returns what stands. Of q it takes Tenant, ID, Agent, To, Request,
// Head and Trace, and Expires where that is sooner than Config.Expiry says. It tries until ctx is over. Errors: INVALID_REQUEST where another request stands under that id, or
// something of q is not as it must be; TIMEOUT where Expires has passed; MESSAGE_TOO_LARGE; RATE_LIMITED where too much is pending; UNAVAILABLE, after which it may stand or not.
func (a *Approvals) Ask(ctx context.Context, q Approval) (Approval, error) {
	q.Tenant = cmp.Or(q.Tenant, agora.DefaultTenant)
	if err := q.check(); err != nil {
		return Approval{}, err
	}
	box := Box(q.Tenant, q.Agent, q.ID)
	if stands, ok := a.known(q.Tenant, box); ok && stands.State != Pending {
		return stands.again(&q)
	}
	within := a.cfg.Expiry
	if !q.Expires.IsZero() {
		within = min(within, q.Expires.Sub(a.cfg.Now()))
	}
	if within < time.Millisecond {
		return Approval{}, agora.Errorf(agora.Timeout, "the deadline of the request has passed")
	}
	leave, err := a.enter(&q, box)
	if err != nil {
		return Approval{}, err
	}
	defer leave()
	opened, mine, err := a.cfg.Book.Open(ctx, q.Tenant, box, appendRequest(nil, &q, within))
	if err != nil {
		return Approval{}, err
	}
	if mine {
		a.total.Asked.Add(1)
		return a.opened(&opened)
	}
	n, err := a.refresh(ctx, q.Tenant, box) // it may be decided
	if err != nil {
		return Approval{}, err
	}
	if n == nil {
		return Approval{}, errLost
	}
	return a.current(n).again(&q)
}

// check returns what of a request is not as it must be.
func (a *Approval) check() error {
	if _, err := agora.ParseOwnID(string(a.Agent)); err != nil {
		return err
	}
	if _, err := agora.ParseAgentID(string(a.To)); err != nil {
		return err
	}
	switch size := len(a.Request) + len(a.Head) + len(a.Trace); {
	case a.To == a.Agent:
		return agora.Errorf(agora.InvalidRequest, "nobody can ask itself for approval")
	case a.ID == "" || len(a.ID) > maxID:
		return agora.Errorf(agora.InvalidRequest, "the id of a request for approval has 1 to %d bytes", maxID)
	case size > MaxRequest:
		return agora.Errorf(agora.MessageTooLarge, "a request for approval has at most %d bytes", MaxRequest)
	}
	return nil
}

// again returns what stands to who asks for it again.
func (a Approval) again(q *Approval) (Approval, error) {
	if a.To != q.To || !bytes.Equal(a.Request, q.Request) {
		return Approval{}, agora.Errorf(agora.InvalidRequest, "another request for approval stands under the id '%s'", clip(q.ID))
	}
	return a, nil
}

// enter counts a request in, if the limits allow; one that stands needs no place.
func (a *Approvals) enter(q *Approval, box string) (leave func(), err error) {
	size := int64(len(q.Request)+len(q.Head)) + recordCost
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.find(q.Tenant, box) != nil {
		return func() {}, nil
	}
	k := askKey(q.Tenant, box)
	if w := a.asks[k]; w != nil {
		w.calls++
		return func() { a.exit(k, w) }, nil
	}
	limit := func(format string) error {
		return &agora.Error{Code: agora.RateLimited, Message: format, RetryAfter: time.Second}
	}
	t, all := a.tenant(q.Tenant), a.cfg.Book.Bytes()
	s := t.share(q.Agent)
	defer a.drop(q.Tenant, q.Agent)
	switch { // room is left for decisions
	case s.pending+s.asking >= a.cfg.Each:
		return nil, limit("too many approvals are pending for this agent")
	case int(a.pending.Load())+a.asking >= a.cfg.Pending:
		return nil, limit("too many approvals are pending")
	case s.bytes+size > all/16:
		return nil, limit("this agent has asked for too many approvals of late")
	case t.bytes+size > all/2:
		return nil, limit("too many approvals were asked for of late")
	case a.bytes+size > all/4*3:
		return nil, &agora.Error{Code: agora.Unavailable, Message: "no more approvals can be kept now", RetryAfter: time.Second}
	}
	w := &underway{tenant: q.Tenant, agent: q.Agent, calls: 1, counts: true}
	a.asks[k] = w
	s.asking++
	a.asking++
	return func() { a.exit(k, w) }, nil
}

// underway is calls of Ask for one approval that are on their way to the book.
type underway struct {
	tenant string
	agent  agora.AgentID
	calls  int
	counts bool // the replica does not have the approval yet, which then counts as pending
}

func askKey(tenant, box string) string { return tenant + "\x00" + box }

func (a *Approvals) exit(key string, w *underway) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.calls--; w.calls > 0 {
		return
	}
	delete(a.asks, key)
	a.uncount(w)
	if a.tenants[w.tenant] != nil {
		a.drop(w.tenant, w.agent)
	}
}

// uncount has an ask count no more; the caller holds mu.
func (a *Approvals) uncount(w *underway) {
	if w.counts {
		w.counts = false
		a.asking--
		a.tenant(w.tenant).share(w.agent).asking--
	}
}

// opened has the replica know at once what this edge has stored.
func (a *Approvals) opened(e *broker.Entry) (Approval, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.open(e, true)
	if err != nil {
		return Approval{}, agora.AsError(err)
	}
	return *n.Approval, nil
}

// current returns n as it stands.
func (a *Approvals) current(n *entry) Approval {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return *n.Approval
}

// known returns an approval of the replica.
func (a *Approvals) known(tenant, box string) (Approval, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if n := a.find(tenant, box); n != nil {
		return *n.Approval, true
	}
	return Approval{}, false
}

// Decide decides, once and for all, and returns what stands. Who has decided and says the same again gets that, too. It tries until ctx is over. Errors: a [DecidedError] where another
// decision stands, or nobody has decided in time; NOT_FOUND; INVALID_REQUEST and MESSAGE_TOO_LARGE for a verdict that is not as it must be; UNAVAILABLE, after which it may be decided or not.
func (a *Approvals) Decide(ctx context.Context, tenant string, agent agora.AgentID, id string, v Verdict) (Approval, error) {
	n, err := a.entryOf(ctx, tenant, Box(tenant, agent, id))
	if err != nil {
		return Approval{}, err
	}
	if n == nil {
		return Approval{}, unknown(id)
	}
	return a.decide(ctx, n, &v)
}

func (a *Approvals) decide(ctx context.Context, n *entry, v *Verdict) (Approval, error) {
	switch {
	case len(v.Note) > MaxNote || len(v.By) > maxBy || v.By == "":
		return Approval{}, agora.Errorf(agora.InvalidRequest, "a decision has a note of at most %d bytes, and a name of who decides", MaxNote)
	case len(v.Answer) > MaxAnswer:
		return Approval{}, agora.Errorf(agora.MessageTooLarge, "a decision has at most %d bytes", MaxAnswer)
	}
	says := saysDenied
	if v.Approved {
		says = saysApproved
	}
	stands := a.current(n)
	if stands.State == Pending {
		if a.cfg.Now().After(stands.Expires) {
			says, v = saysExpired, &Verdict{By: string(agora.Cluster)}
		}
		var err error
		if stands, err = a.store(ctx, n, says, v); err != nil {
			return Approval{}, err
		}
	}
	want := Denied
	if v.Approved {
		want = Approved
	}
	if stands.State != want || stands.By != v.By {
		return Approval{}, &DecidedError{stands}
	}
	return stands, nil
}

// store has the book have a decision, and the replica; it returns what stands.
func (a *Approvals) store(ctx context.Context, n *entry, says byte, v *Verdict) (Approval, error) {
	e, mine, err := a.cfg.Book.Decide(ctx, n.opened, appendVerdict(nil, says, v, !a.awaited(ctx, n)))
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(err, broker.ErrNotOpen) {
		if !n.gone {
			a.remove(n)
		}
		return Approval{}, unknown(n.ID)
	}
	if err != nil {
		return Approval{}, err
	}
	if n.gone { // it is forgotten meanwhile
		return Approval{}, errLost
	}
	if err := a.decided(n, &e); err != nil {
		return Approval{}, agora.AsError(err)
	}
	if mine {
		a.count(n.Approval)
		a.mailSoon(n.Approval, 0)
	}
	return *n.Approval, nil
}

// awaited reports whether somebody waits for a decision, or nothing is mailed.
func (a *Approvals) awaited(ctx context.Context, n *entry) bool {
	q := a.current(n)
	a.mu.RLock()
	m := a.mailer
	a.mu.RUnlock()
	return m == nil || m.Awaited(ctx, &q)
}

// count counts what was decided here.
func (a *Approvals) count(d *Approval) {
	switch d.State {
	case Approved:
		a.total.Approved.Add(1)
	case Denied:
		a.total.Denied.Add(1)
	case Expired:
		a.total.Expired.Add(1)
	}
	a.toDecided.Observe(d.Decided.Sub(d.Asked))
}

// entryOf returns an approval, from the book where the replica has none; nil where that has none either.
func (a *Approvals) entryOf(ctx context.Context, tenant, box string) (*entry, error) {
	a.mu.RLock()
	n := a.find(tenant, box)
	a.mu.RUnlock()
	if n != nil {
		return n, nil
	}
	return a.refresh(ctx, tenant, box)
}
