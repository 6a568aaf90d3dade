package ownership

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// claims keeps the claims of an edge's sessions: those that presence has lost are written again, and sessions that
// another edge has claimed are closed.
type claims struct {
	cfg         *Config
	lease       *Lease
	registered  *registrations
	revalidated atomic.Uint64 // life of the log's connection under which the claims were looked after
	asserted    atomic.Uint64 // counts the snapshots of sessions that were taken to be written again
	departed    departed
	restores    restores
	lossFound   atomic.Bool // presence had lost claims: that it is not whole is to be said still
}

// mayDeliver returns nil while what was read may be handed to agents. An edge that has lost the log may have been taken
// for gone, and its agents may be served elsewhere: what it had read before, their new edge marks as
// redelivered, but of what comes over a new connection nothing is handed on before the claims were looked after.
func (k *claims) mayDeliver() error {
	if _, ok := k.lease.Valid(); !ok {
		return agora.Errorf(agora.Unavailable, "the edge's lease has run out")
	}
	if k.revalidated.Load() != k.cfg.Broker.Life() {
		return agora.Errorf(agora.Unavailable, "the edge had lost the log, and looks after its claims")
	}
	return nil
}

// revalidate makes sure that the claims are still this edge's, once after each time that the log was lost.
func (k *claims) revalidate(ctx context.Context) error {
	life := k.cfg.Broker.Life()
	if k.revalidated.Load() == life || !k.cfg.Broker.Connected() || k.cfg.Broker.Life() != life {
		return nil // or not yet: the claims have to be seen after it has connected
	}
	ctx, cancel := context.WithTimeout(ctx, k.cfg.Lease/2)
	defer cancel()
	all := k.cfg.Sessions.All()
	if _, err := k.reconcile(ctx, all); err != nil {
		return err
	}
	k.revalidated.Store(life)
	for _, s := range all {
		s.Resume()
	}
	return nil
}

// reconcileShares is how many parts the sessions are looked after in, one after the other within a lease.
const reconcileShares = 10

// reconcileLoop looks after every claim once in a lease: a failover of presence may
// have lost one without a trace, and others may have claimed the agent since.
func (k *claims) reconcileLoop() {
	var left []Session
	for guard.Looks && pause.For(k.cfg.Context, k.cfg.Lease/(reconcileShares+2)) {
		if len(left) == 0 {
			left = k.cfg.Sessions.All()
		}
		share := left[:min(len(left), k.cfg.Sessions.Agents()/reconcileShares+1)]
		left = left[len(share):]
		ctx, cancel := context.WithTimeout(k.cfg.Context, k.cfg.Lease)
		lost, err := k.reconcile(ctx, share)
		if lost > 0 { // then others may be, too
			_, err = k.reconcile(ctx, k.cfg.Sessions.All())
		}
		if err != nil && k.cfg.Context.Err() == nil {
			k.cfg.Log.Debug("claims were not looked after", "err", err)
		}
		cancel()
	}
}

// forgetLoop forgets, three times in a lease, the sessions that have left this edge and went on elsewhere.
func (k *claims) forgetLoop() {
	for pause.For(k.cfg.Context, k.cfg.Lease/3) {
		if err := k.forgetSuperseded(); err != nil && k.cfg.Context.Err() == nil {
			k.cfg.Log.Debug("sessions that left were not looked for", "err", err)
		}
	}
}

func (k *claims) forgetSuperseded() error {
	kept := k.departed.claims()
	if len(kept) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(k.cfg.Context, k.cfg.Lease)
	defer cancel()
	over, err := k.cfg.Presence.Sessions.Superseded(ctx, kept)
	k.departed.dropClaims(over)
	return err
}

// reconcile asserts those of sessions whose claims presence does not have as this edge's, and returns how many they
// were.
func (k *claims) reconcile(ctx context.Context, sessions []Session) (lost int, err error) {
	missing, err := k.cfg.Presence.Sessions.Missing(ctx, k.cfg.Holder, func(yield func(presence.Claim) bool) {
		for _, s := range sessions {
			if !s.Over() && !yield(s.Claim()) { // else what has become of it is being told
				return
			}
		}
	})
	if err != nil || len(missing) == 0 {
		return 0, err
	}
	doubtful := map[agora.Address]uint64{}
	for _, c := range missing {
		doubtful[agora.ToAgent(c.Tenant, c.Agent)] = c.Epoch
	}
	var again []Session
	for _, s := range sessions {
		if c := s.Claim(); doubtful[agora.ToAgent(c.Tenant, c.Agent)] == c.Epoch {
			again = append(again, s)
		}
	}
	k.cfg.Log.Info("claims are asserted again", "claims", len(again))
	return len(again), k.reassert(ctx, again, nil)
}

// reassertAll writes all that the edge holds again, what it held a moment ago and is in its grace included.
func (k *claims) reassertAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.cfg.Lease/2)
	defer cancel()
	k.registered.again(ctx)
	k.asserted.Add(1) // before they are looked for: one that opens meanwhile is written as one that is away
	errs := []error{k.reassert(ctx, k.cfg.Sessions.All(), k.departed.all())}
	for _, restore := range k.restores.all() {
		errs = append(errs, restore(ctx))
	}
	return errors.Join(errs...)
}

// reassertAfterLapse is reassertAll once the lease was gone. Where it fails, or the lease is gone once more meanwhile,
// the next renewal does it again.
func (k *claims) reassertAfterLapse(ctx context.Context) error {
	k.lease.lapsed.Store(false)
	err := k.reassertAll(ctx)
	if err != nil {
		k.lease.lapsed.Store(true)
	}
	return err
}

// restores is what writes again what is kept in presence beside sessions. The zero value is ready to use.
type restores struct {
	mu    sync.Mutex // guards the field below
	funcs []func(context.Context) error
}

func (r *restores) all() []func(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.funcs)
}

func (r *restores) add(restore func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.funcs = append(r.funcs, restore)
}

// reassert writes claims again and closes the sessions that another edge has claimed since.
func (k *claims) reassert(ctx context.Context, sessions []Session, away []presence.Held) error {
	if !guard.Asserts {
		return nil
	}
	k.asserted.Add(1)
	var held []presence.Held
	for _, s := range sessions {
		held = append(held, s.Snapshot())
	}
	found, err := k.write(ctx, append(away, held...))
	if err != nil {
		return err
	}
	for _, c := range found.Deposed {
		for _, s := range k.cfg.Sessions.Of(agora.ToAgent(c.Tenant, c.Agent), c.Epoch+1) {
			s.Depose()
		}
	}
	for i, s := range sessions { // what has changed since its snapshot may be undone
		s.LeaveAgain(held[i].Spaces)
		if held[i].Away == 0 && s.Over() {
			k.tellLostAgain(ctx, s)
		}
	}
	return nil
}

// write writes claims again, and the lease with them. Where the lease was gone the next renewal looks after all the
// others; where presence had lost claims, all edges do.
func (k *claims) write(ctx context.Context, held []presence.Held) (found presence.Reasserted, err error) {
	found, err = k.cfg.Presence.Sessions.Reassert(ctx, k.cfg.Holder, held)
	if found.Unleased {
		k.lease.lapsed.Store(true)
	}
	if found.Lost > 0 {
		k.lossFound.Store(true)
		err = errors.Join(err, k.tellLoss(ctx))
	}
	return found, err
}

// tellLoss has presence say that it is not whole where claims were found lost: more may be, which no edge looks for.
func (k *claims) tellLoss(ctx context.Context) error {
	if !k.lossFound.Load() {
		return nil
	}
	was, err := k.cfg.Presence.Doubt(ctx)
	if err != nil {
		return err
	}
	k.lossFound.Store(false)
	if was {
		k.cfg.Log.Warn("presence has lost sessions of this edge: every edge tells it again of all that it holds", "edge", k.cfg.Holder.Edge)
	}
	return nil
}

// tellLostAgain tells that a socket is gone which went while its session was asserted: what was told before may be
// undone.
func (k *claims) tellLostAgain(ctx context.Context, s Session) {
	if err := s.Lose(ctx); err != nil && !errors.Is(err, presence.ErrDeposed) {
		k.cfg.Log.Debug("socket was not told lost", "agent", s.Claim().Agent, "err", err)
	}
}
