package edge

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// mayDeliver returns nil while what was read may be handed to agents. An edge that has lost the log may have been taken
// for gone, and its agents may be served elsewhere: what it had read before, their new edge marks as
// redelivered, but of what comes over a new connection nothing is handed on before the claims were looked after.
func (n *Node) mayDeliver() error {
	if _, ok := n.valid(); !ok {
		return agora.Errorf(agora.Unavailable, "the edge's lease has run out")
	}
	if n.revalidated.Load() != n.cfg.Broker.Life() {
		return agora.Errorf(agora.Unavailable, "the edge had lost the log, and looks after its claims")
	}
	return nil
}

// revalidateClaims makes sure that the claims are still this edge's, once after each time that the log was lost.
func (n *Node) revalidateClaims(ctx context.Context) error {
	life := n.cfg.Broker.Life()
	if n.revalidated.Load() == life || !n.cfg.Broker.Connected() || n.cfg.Broker.Life() != life {
		return nil // or not yet: the claims have to be seen after it has connected
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Lease/2)
	defer cancel()
	all := n.sessions.all()
	if _, err := n.reconcile(ctx, all); err != nil {
		return err
	}
	n.revalidated.Store(life)
	for _, s := range all {
		if s.kept.Swap(false) {
			s.conn.Wake()
		}
	}
	return nil
}

// reconcileShares is how many parts the sessions are looked after in, one after the other within a lease.
const reconcileShares = 10

// reconcileLoop looks after every claim once in a lease: a failover of presence may
// have lost one without a trace, and others may have claimed the agent since.
func (n *Node) reconcileLoop() {
	var left []*Session
	for guard.Looks && pause.For(n.ctx, n.cfg.Lease/(reconcileShares+2)) {
		if len(left) == 0 {
			left = n.sessions.all()
		}
		share := left[:min(len(left), n.sessions.agents()/reconcileShares+1)]
		left = left[len(share):]
		ctx, cancel := context.WithTimeout(n.ctx, n.cfg.Lease)
		lost, err := n.reconcile(ctx, share)
		if lost > 0 { // then others may be, too
			_, err = n.reconcile(ctx, n.sessions.all())
		}
		if err != nil && n.ctx.Err() == nil {
			n.cfg.Log.Debug("claims were not looked after", "err", err)
		}
		cancel()
	}
}

// reconcile asserts those of sessions whose claims presence does not have as this edge's, and returns how many they were.
func (n *Node) reconcile(ctx context.Context, sessions []*Session) (lost int, err error) {
	missing, err := n.cfg.Presence.Sessions.Missing(ctx, n.holder, func(yield func(presence.Claim) bool) {
		for _, s := range sessions {
			if !s.ended() && !yield(s.claim) { // else what has become of it is being told
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
	var again []*Session
	for _, s := range sessions {
		if doubtful[s.address()] == s.claim.Epoch {
			again = append(again, s)
		}
	}
	n.cfg.Log.Info("claims are asserted again", "claims", len(again))
	return len(again), n.reassertClaims(ctx, again, nil)
}

// reassertAll writes all that the node holds again, what it held a moment ago and is in its grace included.
func (n *Node) reassertAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Lease/2)
	defer cancel()
	n.registerAgain(ctx)
	errs := []error{n.reassertClaims(ctx, n.sessions.all(), n.departed.all()), n.calls.Hold(ctx)}
	for _, restore := range n.restores.all() {
		errs = append(errs, restore(ctx))
	}
	return errors.Join(errs...)
}

// restores is what doors keep in presence beside sessions. The zero value is ready to use.
type restores struct {
	mu    sync.Mutex // guards the field below
	funcs []func(context.Context) error
}

func (r *restores) all() []func(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.funcs)
}

// Restores has restore called whenever presence may have lost what it knew, before it is taken for whole again: it writes once more what its door
// keeps there. Its error has the node call it again. It may be called at any time until the node is closed, by one goroutine at a time.
func (n *Node) Restores(restore func(context.Context) error) {
	n.restores.mu.Lock()
	defer n.restores.mu.Unlock()
	n.restores.funcs = append(n.restores.funcs, restore)
}

// reassertClaims writes claims again and closes the sessions that another edge has claimed since.
func (n *Node) reassertClaims(ctx context.Context, sessions []*Session, away []presence.Held) error {
	if !guard.Asserts {
		return nil
	}
	var held []presence.Held
	for _, s := range sessions {
		held = append(held, s.held())
	}
	deposed, err := n.cfg.Presence.Sessions.Reassert(ctx, n.holder, append(away, held...))
	if err != nil {
		return err
	}
	for _, c := range deposed {
		for _, s := range n.sessions.of(agora.ToAgent(c.Tenant, c.Agent), c.Epoch+1) {
			s.deposed()
		}
	}
	for i, s := range sessions {
		if held[i].Away == 0 && s.ended() {
			n.tellLostAgain(ctx, s)
		}
	}
	return nil
}

// tellLostAgain tells that a socket is gone which went while its session was asserted: what was told before may be undone.
func (n *Node) tellLostAgain(ctx context.Context, s *Session) {
	err := n.cfg.Presence.Sessions.Lose(ctx, s.claim, s.position(), s.spacePositions(), s.goodbye)
	if err != nil && !errors.Is(err, presence.ErrDeposed) {
		n.cfg.Log.Debug("socket was not told lost", "agent", s.claim.Agent, "err", err)
	}
}
