package edge

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// An agent that an edge has dialled may speak to any edge besides: its heartbeats, its new card and its goodbye come by
// whichever edge its requests reach. A door there has them done where the session is.

// Alive brings a sign of life of an agent to the connection of its session, whatever edge holds that: the connection is
// told where it is a [Hearer]. Where no edge that lives holds the session, this one adopts it: see [Actor.Adopt]. It
// returns nil once the connection is told. Errors: AGENT_NOT_FOUND where the agent has no session that an edge has
// dialled, UNAUTHORIZED, FORBIDDEN where it is another principal's, UNAVAILABLE.
func (a *Actor) Alive(ctx context.Context, id agora.AgentID) error {
	return a.reach(ctx, id, Command{Verb: verbAlive})
}

// Update replaces the card of an agent's session, whatever edge holds that: like [Session.Update], and with the errors
// of [Actor.Alive] besides.
func (a *Actor) Update(ctx context.Context, card agora.Agent) error {
	light, detail, err := presence.PackCard(card)
	if err = errors.Join(err, a.node.limits.checkCard(&card)); err != nil {
		return agora.AsError(err)
	}
	return a.reach(ctx, card.ID, Command{Verb: verbUpdate, Card: light, Detail: detail})
}

// reach has a command done by the one who holds the session of an agent that an edge has dialled. Where no edge that
// lives does, this one adopts it first.
func (a *Actor) reach(ctx context.Context, id agora.AgentID, what Command) error {
	if err := errors.Join(a.Check(), a.mayBe(id)); err != nil {
		return agora.AsError(err)
	}
	n, who := a.node, a.Principal()
	what.Agent, what.ID, what.Principal = agora.ToAgent(who.Tenant, id), rand.Text(), who.Name
	for end := time.Now().Add(n.cfg.Patience); ; {
		try, cancel := context.WithTimeout(ctx, actAgain)
		_, err := n.holders.do(try, &what, nil)
		cancel()
		switch {
		case errors.Is(err, errElsewhere):
			begun := time.Now()
			if err := a.Adopt(ctx, id); err != nil {
				return err
			}
			end = end.Add(time.Since(begun))
			err = errUnreachable
		case code(err) != agora.Unavailable:
			return err
		}
		if n.sessions.live(what.Agent) != nil { // it was adopted
			continue
		}
		if !time.Now().Before(end) {
			return err
		}
		if !pause.For(ctx, lookAgain) {
			return agora.AsError(ctx.Err())
		}
	}
}

// End ends an agent's session whose connection an edge has dialled, wherever in the cluster it is, as its agent says
// goodbye: the connection is closed, what the session has open is aborted for its receivers, it leaves its spaces, and
// id and address are free, without a grace. It returns when the session is over, which may take as long as a lease
// where its edge has died. Errors: AGENT_NOT_FOUND where there is no such session, UNAUTHORIZED, FORBIDDEN where it is
// another principal's, UNAVAILABLE.
func (a *Actor) End(ctx context.Context, id agora.AgentID) error {
	if err := errors.Join(a.Check(), a.mayBe(id)); err != nil {
		return agora.AsError(err)
	}
	n, who := a.node, a.Principal()
	for session := ""; ; {
		o, is, err := n.cfg.Presence.Dials.Find(ctx, who.Tenant, id)
		switch {
		case err != nil:
			return agora.AsError(err)
		case session != "" && (!is || o.Session != session): // it has ended meanwhile, or another edge has ended it
			n.directory.Touch(who.Tenant, id)
			return nil
		case !is:
			return agora.UnknownAgent(id)
		case o.Principal != who.Name:
			return notYours(id)
		}
		session = o.Session
		if err = n.owner.EndDialled(ctx, o); err == nil {
			n.directory.Touch(who.Tenant, id)
			return nil
		}
		if !errors.Is(err, presence.ErrDeposed) || ctx.Err() != nil {
			return agora.AsError(err)
		}
	}
}

// EndDialled ends an agent's session whose connection an edge has dialled, wherever it is held, because the agent has
// failed: as [Actor.End] does for the agent itself. With unlessAlive the edge that holds the session asks the agent for
// a sign of life first, and the session stays where there is one. ended says whether it was ended by this.
// AGENT_NOT_FOUND where there is no such session, UNAVAILABLE.
func (n *Node) EndDialled(ctx context.Context, tenant string, id agora.AgentID, unlessAlive bool) (ended bool, err error) {
	return n.owner.EndFailed(ctx, tenant, id, unlessAlive)
}

// HearDialled brings a sign of life of an agent whose connection an edge has dialled to its session, where that is
// held: for a door that has heard from the agent otherwise. AGENT_NOT_FOUND where there is no such session,
// UNAVAILABLE.
func (n *Node) HearDialled(ctx context.Context, tenant string, id agora.AgentID) error {
	o, is, err := n.cfg.Presence.Dials.Find(ctx, tenant, id)
	switch {
	case err != nil:
		return agora.AsError(err)
	case !is:
		return agora.UnknownAgent(id)
	}
	_, err = n.holders.do(ctx, &Command{Verb: verbAlive, Agent: agora.ToAgent(tenant, id), ID: rand.Text(), Principal: o.Principal}, nil)
	if errors.Is(err, errElsewhere) { // its next holder begins to count again
		return nil
	}
	return err
}

// dialled makes the claim that a connection asks for one of a session that its edge has dialled. INVALID_REQUEST for an
// address that is none.
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
	req.Dial = &presence.Dialled{Names: h.Names}
	if req.Dial.Address, err = dial.Canonical(h.Dialled); err != nil {
		return err
	}
	req.Dial.By, err = vouch(h.Card.DialectName(), a.Principal())
	return err
}

// vouchAgain writes into presence that the principal of a session has other credentials, where others may have to dial
// for it.
func (d *dials) vouchAgain(s *Session) {
	how := d.of(s)
	if how == nil {
		return
	}
	dialect, _, err := readVouched(how.By)
	if err == nil {
		how.By, err = vouch(dialect, s.actor.Principal())
	}
	if err == nil {
		d.put(s, *how)
		ctx, cancel := context.WithTimeout(s.node.ctx, s.node.cfg.Lease)
		defer cancel()
		err = s.node.cfg.Presence.Dials.SetBy(ctx, s.claim, how.By)
	}
	if err != nil && !errors.Is(err, presence.ErrDeposed) {
		s.node.cfg.Log.Warn("other edges don't know the credentials by which an agent is dialled now", "agent", s.claim.Agent, "err", err)
	}
}

// Hearer is a [Conn] that learns of signs of life which its agent gives in other ways than over the connection: see
// [Actor.Alive].
type Hearer interface {
	Conn
	Alive() // must not block
}

// doDialled does a command for who may speak for an agent that this edge has dialled.
func (s *Session) doDialled(ctx context.Context, c *Command) error {
	switch {
	case !s.claim.Dialled:
		return agora.UnknownAgent(s.claim.Agent)
	case c.Principal != s.actor.Principal().Name:
		return notYours(s.claim.Agent)
	case c.Verb == verbUpdate:
		card, known := presence.UnpackCard(s.claim.Agent, c.Card, c.Detail)
		if !known {
			return errUnknownVerb
		}
		return s.Update(ctx, card, false)
	}
	s.Alive()
	if h, is := s.conn.(Hearer); is {
		h.Alive()
	}
	return nil
}

// AddressTaken returns the address that [Actor.Open] was refused, as another agent has it, of whichever tenant, and
// however it writes it; taken is false for any other error, such as that another connection has the id.
func AddressTaken(err error) (address string, taken bool) {
	e, taken := errors.AsType[*presence.AddressError](err)
	if !taken {
		return "", false
	}
	return e.Address, true
}
