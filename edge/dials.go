package edge

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// Dialer returns what doors dial agents with: it dials nothing that the settings deny.
func (n *Node) Dialer() *dial.Dialer { return n.cfg.Dialer }

// dials is what an edge keeps of sessions whose connections are dialled, here or to be. The zero value is ready to use.
type dials struct {
	mu       sync.Mutex // guards the fields below
	held     map[*Session]presence.Dialled
	adopters map[string]Adopter // by dialect
}

// adoptTime bounds dialling, and the claim.
const adoptTime = 10 * time.Second

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

// adoptBy has agents of a dialect be dialled by a door, and reports whether it is the first one.
func (d *dials) adoptBy(dialect string, door Adopter) (first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first = d.adopters == nil
	put(&d.adopters, dialect, door)
	return first
}

// adopter returns the door of a dialect; nil where there is none here.
func (d *dials) adopter(dialect string) Adopter {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.adopters[dialect]
}

// can reports whether this edge has a door that dials an agent.
func (d *dials) can(o presence.Orphan) bool {
	dialect, _, err := readVouched(o.Dial.By)
	return err == nil && d.adopter(dialect) != nil
}

// adopt has the door of its dialect dial an agent for an actor. ErrAdopted where somebody else goes on with the session.
func (d *dials) adopt(ctx context.Context, o presence.Orphan, a *Actor) error {
	dialect, _, err := readVouched(o.Dial.By)
	if err != nil {
		return err
	}
	door := d.adopter(dialect)
	if door == nil {
		return agora.Errorf(agora.Unavailable, "this edge dials no agents of dialect %q", dialect)
	}
	if who := a.Principal(); who.Tenant != o.Tenant || who.Name != o.Principal {
		return ownership.BelongsElsewhere(o.Agent)
	}
	if err := errors.Join(a.Check(), a.mayBe(o.Agent)); err != nil {
		return agora.AsError(err)
	}
	slot, err := a.node.limits.Shedder.Acquire()
	if err != nil {
		return err
	}
	orphan := &Orphan{Address: o.Dial.Address, Card: o.Card, Actor: a, seen: o, slot: slot}
	ctx, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	err = door.Adopt(ctx, orphan)
	if err == nil && !orphan.opened {
		err = agora.Errorf(agora.Unavailable, "its door has not opened the session")
	}
	if !orphan.opened {
		slot.Release()
	}
	return err
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
		err = s.node.cfg.Presence.SetDialBy(ctx, s.claim, how.By)
	}
	if err != nil && !errors.Is(err, presence.ErrDeposed) {
		s.node.cfg.Log.Warn("other edges don't know the credentials by which an agent is dialled now", "agent", s.claim.Agent, "err", err)
	}
}
