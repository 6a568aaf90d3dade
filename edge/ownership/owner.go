// Package ownership knows who holds an agent's id, for how long, and who takes over: the lease of an edge, the claims
// of its sessions, their hand-over to the next holder, and the end of what nobody holds any more.
package ownership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// Owner is one edge as a holder of ids. Its methods may be called at the same time.
type Owner struct {
	cfg        *Config
	lease      *Lease
	handovers  *handovers
	status     *status
	registered *registrations
	reaper     *reaper
	claims     *claims
	renewals   *renewals
	claimer    *claimer
	dialled    *dialled
	adoptions  *adoptions
}

// New returns an Owner that holds nothing until Start.
func New(cfg Config) *Owner {
	o := &Owner{cfg: &cfg}
	o.lease = &Lease{cfg: o.cfg}
	o.status = &status{o.cfg}
	o.registered = &registrations{cfg: o.cfg, status: o.status}
	o.handovers = &handovers{o.cfg, o.lease, &livenessChecks{cfg: o.cfg}}
	o.reaper = &reaper{cfg: o.cfg, lease: o.lease, handovers: o.handovers, status: o.status, registered: o.registered}
	o.claims = &claims{cfg: o.cfg, lease: o.lease, registered: o.registered}
	o.renewals = &renewals{
		cfg: o.cfg, lease: o.lease, claims: o.claims, rebuild: &rebuild{cfg: o.cfg, claims: o.claims}, lost: &lostSessions{cfg: o.cfg, lease: o.lease},
	}
	o.dialled = &dialled{o.cfg, o.reaper}
	o.claimer = &claimer{cfg: o.cfg, reaper: o.reaper, dialled: o.dialled}
	o.adoptions = &adoptions{cfg: o.cfg, lease: o.lease, handovers: o.handovers, busy: map[agora.Address]struct{}{}, failed: map[agora.Address]setback{}}
	return o
}

// Start takes the edge's lease, and then keeps it and all that the edge holds, in the background. It fails when
// presence or the log can't be reached until ctx is over, and when another edge that lives has the same id.
func (o *Owner) Start(ctx context.Context) error {
	var reminder pause.Reminder
	for {
		err := o.renewals.renew(ctx)
		if err == nil {
			break
		}
		if reminder.Due() {
			o.cfg.Log.Warn("still waiting for the edge's lease in Redis", "err", err)
		}
		if _, is := errors.AsType[*errRival](err); is || !pause.For(ctx, 200*time.Millisecond) {
			return err
		}
	}
	o.cfg.Go(o.renewals.loop)
	o.cfg.Go(o.claims.reconcileLoop)
	o.cfg.Go(o.claims.forgetLoop)
	o.cfg.Go(o.reaper.loop)
	return nil
}

// Close says to other edges that this one is no witness any more. It is called when Config.Context has ended and all is
// over that Config.Go was given.
func (o *Owner) Close() { o.renewals.rebuild.close() }

// Holder returns which life of which edge it is, as presence knows it.
func (o *Owner) Holder() presence.Holder { return o.cfg.Holder }

// Lease returns the edge's lease.
func (o *Owner) Lease() *Lease { return o.lease }

// Swept returns when this edge last ended all that was due without an error: sessions whose grace is over, and those of
// dead edges. Before the first time it is when the edge began to look.
func (o *Owner) Swept() time.Time { return time.Unix(0, o.reaper.swept.Load()) }

// MayDeliver returns nil while what was read may be handed to agents.
func (o *Owner) MayDeliver() error { return o.claims.mayDeliver() }

// Restores has restore called whenever presence may have lost what it knew, before it is taken for whole again. Its
// error has it be called again. It may be called at any time until the edge is closed; restore is called by one
// goroutine at a time.
func (o *Owner) Restores(restore func(context.Context) error) { o.claims.restores.add(restore) }

// Arrive says that a connection is about to become an agent's session. The caller owes a call of Done, once it has, or
// has failed.
func (o *Owner) Arrive(at agora.Address) *Arrival { return o.claimer.arrivals.arrive(at) }

// Expects reports whether a connection is about to become a session.
func (o *Owner) Expects() bool { return o.claimer.arrivals.any() }

// Claim takes the id for an arrival, past a dead incumbent and a session that is just ending. Nothing may be delivered
// under the claim before AwaitHandover. Errors: AGENT_EXISTS, UNAVAILABLE, INVALID_REQUEST for a wrong resume token,
// and ErrAdopted.
func (o *Owner) Claim(ctx context.Context, req *presence.ClaimRequest, a *Arrival) (presence.Claim, error) {
	return o.claimer.claim(ctx, req, a)
}

// AwaitHandover waits until every past holder of a claim has handed over, its lease is over, or it is known to be gone.
// It returns presence's error or ctx's.
func (o *Owner) AwaitHandover(ctx context.Context, c presence.Claim) error {
	return o.handovers.await(ctx, c)
}

// Anew has a session go on that its agent has come back to as a new process: it receives as before, and what it sends
// is said under another id. What it had open is aborted for its receivers, and nothing late of it can be stored. It
// returns the claim under that id; the record's lanes are over.
func (o *Owner) Anew(ctx context.Context, c presence.Claim, rec *presence.Record, session string) (presence.Claim, error) {
	old := *rec
	if old.Dirty == 0 { // every holder has flushed: nothing is under way in the others
		old.Lanes = slices.DeleteFunc(slices.Clone(old.Lanes), func(l presence.Lane) bool { return len(l.Open) == 0 })
	}
	if err := o.reaper.endLanes(ctx, c, old); err != nil {
		return c, err
	}
	c, err := o.cfg.Presence.Sessions.Anew(ctx, c, session, slices.Collect(maps.Keys(rec.Spaces)))
	if err == nil {
		rec.Lanes, rec.Dirty = nil, 0
	}
	return c, err
}

// Here says that the session of an agent is among those that the edge holds, and stands in its grace no more.
func (o *Owner) Here(at agora.Address) { o.claims.departed.drop(at) }

// Gone keeps a session in mind that has left this edge, until another has begun it or its grace is over.
func (o *Owner) Gone(h presence.Held) { o.claims.departed.add(h, time.Now().Add(h.Away)) }

// Reconcile makes sure that the claim of a session is still this edge's.
func (o *Owner) Reconcile(ctx context.Context, s Session) error {
	_, err := o.claims.reconcile(ctx, []Session{s})
	return err
}

// Reassert writes the claim of a session again where presence has lost it; false where it is another's by now, or over.
func (o *Owner) Reassert(ctx context.Context, h presence.Held) (held bool, err error) {
	found, err := o.claims.write(ctx, []presence.Held{h})
	return err == nil && len(found.Deposed) == 0, err
}

// Asserted counts how often sessions were written to presence again, each as it stood then. Anyone who changes presence
// before the session, as a join does, compares the counts from before and after: where they differ presence may lack
// the change, and the session is to be written once more.
func (o *Owner) Asserted() uint64 { return o.claims.asserted.Load() }

// Return lets go of a claim that nobody waits for any more: it stays in its grace.
func (o *Owner) Return(c presence.Claim) { o.claimer.giveBack(c) }

// Probed reports whether the connection that holds an epoch here gives a sign of life in time.
func (o *Owner) Probed(ctx context.Context, at agora.Address, epoch uint64) bool {
	return o.claimer.probed(ctx, at, epoch)
}

// HandOver closes what this edge still holds of an agent from before an epoch, and has no session of it begin under an
// older one.
func (o *Owner) HandOver(ctx context.Context, at agora.Address, epoch uint64) (done, clean bool) {
	o.claimer.arrivals.supersede(at, epoch) // before the sessions are looked for: one that is not there yet finds that
	return handOver(ctx, o.cfg.Sessions.Of(at, epoch))
}

// Reap ends a session permanently that is ending, whichever edge had it: every open stream of it is aborted in its
// receiver's log, it leaves its spaces, and the id is free. flushed says that its last edge has ended its lanes
// already. It returns when the session is over; nil also where somebody else has ended it.
func (o *Owner) Reap(ctx context.Context, tenant string, id agora.AgentID, flushed bool) error {
	return o.reaper.reap(ctx, tenant, id, flushed)
}

// Register registers an agent without a connection, for as long as lasts. A session that is just ending is finished
// first. AGENT_EXISTS where the id is another principal's, UNAVAILABLE.
func (o *Owner) Register(ctx context.Context, r presence.Registration, lasts time.Duration) error {
	id := r.Card.ID
	for {
		begun := time.Now()
		epoch, told, err := o.cfg.Presence.Registrations.Register(ctx, r, lasts)
		switch {
		case errors.Is(err, presence.ErrOwned):
			return BelongsElsewhere(id)
		case errors.Is(err, presence.ErrEnding):
			if err := o.reaper.reap(ctx, r.Tenant, id, false); err != nil {
				return agora.AsError(err)
			}
			if err := ctx.Err(); err != nil {
				return agora.AsError(err)
			}
			continue
		case err != nil:
			return agora.AsError(err)
		}
		r.Epoch = epoch
		o.registered.add(r, begun.Add(lasts))
		if told != "" {
			o.status.announce(presence.Claim{Tenant: r.Tenant, Agent: id, Epoch: epoch}, told)
		}
		return nil
	}
}

// Withdrawal is a registration without a connection that was withdrawn.
type Withdrawal struct {
	owner *Owner
	claim presence.Claim
	over  bool // no session continues
}

// Withdraw ends a registration before its time; a session of the agent continues. The caller calls Finish then.
// AGENT_NOT_FOUND where there is none, AGENT_EXISTS where it is another principal's, UNAVAILABLE.
func (o *Owner) Withdraw(ctx context.Context, tenant, principal string, id agora.AgentID) (*Withdrawal, error) {
	c, over, err := o.cfg.Presence.Registrations.Withdraw(ctx, tenant, principal, id)
	switch {
	case errors.Is(err, presence.ErrDeposed):
		return nil, agora.UnknownAgent(id)
	case errors.Is(err, presence.ErrOwned):
		return nil, BelongsElsewhere(id)
	case err != nil:
		return nil, agora.AsError(err)
	}
	o.registered.drop(agora.ToAgent(tenant, id))
	return &Withdrawal{o, c, over}, nil
}

// Finish tells of it. UNAVAILABLE: then a sweep does.
func (w *Withdrawal) Finish(ctx context.Context) error {
	if !w.over {
		w.owner.status.announce(w.claim, agora.Updated)
		return nil
	}
	err := w.owner.registered.lapse(ctx, w.claim.Tenant, w.claim.Agent)
	if err != nil && !errors.Is(err, presence.ErrDeposed) { // which a sweep has done
		return agora.AsError(err)
	}
	return nil
}

// Registered is about how many bytes the edge keeps of registrations without a connection, by whose they are.
func (o *Owner) Registered() map[Registrant]int64 { return o.registered.bytes() }

// LookAfterDialled has the edge look for sessions without an edge, and adopt them, and after the addresses of those
// that it has, until it is closed. It is called once.
func (o *Owner) LookAfterDialled() {
	o.cfg.Go(o.adoptions.loop)
	o.cfg.Go(o.dialled.loop)
}

// AdoptBy has adopt go on with a session that has no edge, now, and returns what it does; begun is false where that is
// under way already.
func (o *Owner) AdoptBy(s presence.Orphan, adopt func() error) (begun bool, err error) {
	at := agora.ToAgent(s.Tenant, s.Agent)
	if !o.adoptions.begin(at, s.Epoch, false) {
		return false, nil
	}
	err = adopt()
	o.adoptions.end(at, s.Epoch, err)
	return true, err
}

// HasLost reports whether nobody is there who holds an active session that an edge has dialled. It may take a lease.
func (o *Owner) HasLost(ctx context.Context, s presence.Orphan) bool {
	return o.handovers.hasLost(ctx, s)
}

// EndDialled ends a session permanently whose connection an edge has dialled, as its agent has said goodbye.
// presence.ErrDeposed where it continues under another claim, or is over.
func (o *Owner) EndDialled(ctx context.Context, s presence.Orphan) error {
	return o.dialled.end(ctx, s, Departed)
}

// EndFailed ends the session of an agent that an edge has dialled, as the agent has failed. With unlessAlive it stays
// where the agent gives a sign of life. It returns false where it stays, or continues under another claim.
// AGENT_NOT_FOUND where there is no such session, UNAVAILABLE.
func (o *Owner) EndFailed(ctx context.Context, tenant string, id agora.AgentID, unlessAlive bool) (ended bool, err error) {
	s, is, err := o.cfg.Presence.Dials.Find(ctx, tenant, id)
	switch {
	case err != nil:
		return false, agora.AsError(err)
	case !is:
		return false, agora.UnknownAgent(id)
	case unlessAlive && o.dialled.answers(ctx, s):
		return false, nil
	}
	err = o.dialled.end(ctx, s, Departed)
	if errors.Is(err, presence.ErrDeposed) { // it continues under another claim
		return false, nil
	}
	return err == nil, err
}

// Announce tells agent.status what has become of an agent, behind: nobody waits for it.
func (o *Owner) Announce(c presence.Claim, status agora.AgentStatus) { o.status.announce(c, status) }

// Note writes an agent's history, which nothing but operators' questions depends on: what can't be written is left out.
// It blocks for a second at most.
func (o *Owner) Note(c presence.Claim, e presence.Event) { o.status.note(c, e) }
