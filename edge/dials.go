package edge

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// Dialer returns what doors dial agents with: it dials nothing that the settings deny.
func (n *Node) Dialer() *dial.Dialer { return n.cfg.Dialer }

// dials is what an edge keeps of sessions whose connections are dialled, here or to be. The zero value is ready to use.
type dials struct {
	mu       sync.Mutex // guards the fields below
	held     map[*Session]presence.Dialled
	adopters map[string]Adopter         // by dialect
	busy     map[agora.Address]struct{} // whose adoption is under way
	failed   map[agora.Address]setback

	silent map[presence.Holder]*absence // holders that have left out renewals; the loop's own, like the next
	gone   map[presence.Holder]struct{} // of them those that are known to be gone
}

// setback keeps an edge that can't reach an agent from dialling it again soon.
type setback struct {
	epoch uint64
	wait  time.Duration
	until time.Time
}

// How long an edge waits after it could not dial, at first and at most. Others try meanwhile.
const (
	firstSetback = 500 * time.Millisecond
	mostSetback  = 5 * time.Second
)

// put keeps how the connection of a session is dialled.
func (d *dials) put(s *Session, how presence.Dialled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	put(&d.held, s, how)
}

// of returns how the connection of a session is dialled; nil where its agent has made it.
func (d *dials) of(s *Session) *presence.Dialled {
	if !s.claim.Dialled {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	how, ok := d.held[s]
	if !ok {
		return nil
	}
	return &how
}

func (d *dials) drop(s *Session) {
	if s.claim.Dialled {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.held, s)
	}
}

// adopter returns the door of a dialect; nil where there is none here.
func (d *dials) adopter(dialect string) Adopter {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.adopters[dialect]
}

// begin reports whether the adoption of an agent's session under an epoch may begin now, and notes that it has. patient says that a setback counts.
func (d *dials) begin(at agora.Address, epoch uint64, patient bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, is := d.busy[at]; is || len(d.busy) >= mostAdoptions && patient {
		return false
	}
	if f := d.failed[at]; patient && f.epoch == epoch && time.Now().Before(f.until) {
		return false
	}
	put(&d.busy, at, struct{}{})
	return true
}

// end notes how an adoption went.
func (d *dials) end(at agora.Address, epoch uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, at)
	now := time.Now()
	maps.DeleteFunc(d.failed, func(_ agora.Address, f setback) bool { return now.Sub(f.until) > time.Minute })
	if err == nil || errors.Is(err, errAdopted) {
		delete(d.failed, at)
		return
	}
	f := setback{epoch: epoch, wait: firstSetback}
	if before := d.failed[at]; before.epoch == epoch {
		f.wait = min(2*before.wait, mostSetback)
	}
	f.until = now.Add(f.wait)
	put(&d.failed, at, f)
}

// dialled makes the claim that a connection asks for one of a session that its edge has dialled. INVALID_REQUEST for an address that is none.
func (a *Actor) dialled(h *Hello, req *presence.ClaimRequest) (err error) {
	if h.orphan != nil {
		if !guard.Adoption {
			how := h.orphan.seen.Dial
			req.Dial = &how
			return nil
		}
		req.Adopt = h.orphan.seen.Epoch
	}
	if h.Dialled == "" {
		return nil
	}
	req.Dial = new(presence.Dialled)
	if req.Dial.Address, err = dial.Canonical(h.Dialled); err != nil {
		return err
	}
	req.Dial.By, err = vouch(h.Card.DialectName(), a.Principal())
	return err
}

// vouchAgain writes into presence that the principal of a session has other credentials, where others may have to dial for it.
func (s *Session) vouchAgain() {
	how := s.node.dials.of(s)
	if how == nil {
		return
	}
	dialect, _, err := readVouched(how.By)
	if err == nil {
		how.By, err = vouch(dialect, s.actor.Principal())
	}
	if err == nil {
		s.node.dials.put(s, *how)
		ctx, cancel := context.WithTimeout(s.node.ctx, s.node.cfg.Lease)
		defer cancel()
		err = s.node.cfg.Presence.Dials.SetBy(ctx, s.claim, how.By)
	}
	if err != nil && !errors.Is(err, presence.ErrDeposed) {
		s.node.cfg.Log.Warn("other edges don't know the credentials by which an agent is dialled now", "agent", s.claim.Agent, "err", err)
	}
}
