package presence

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
)

// Registration is that of an agent without a connection.
type Registration struct {
	Tenant    string
	Principal string // who it is; only the same may renew it, or claim the id while it lasts
	Card      agora.Agent
	Epoch     uint64 // 0 for a new one; else of one that the server may have lost, and that nobody has renewed since
}

// Registrations is which agents are registered without a connection.
type Registrations struct {
	*backend
	cards cards
}

// Register registers an agent without a connection, or renews that: it is in the directory, and known, for as long as
// lasts from now on, and returns the registration's epoch and what is to be told of it: Online where it is new, Updated
// where the card that the directory shows is another one, nothing for a mere renewal. A session of the agent, which is
// to be the same principal's, continues as it is, and is shown with its own card unless it says nothing of itself; when
// it is over, what is left of the registration counts again. ErrOwned: the id is another principal's. ErrEnding: a
// session or a registration of the id is over and not finished (Ending, Lapsed). No record, while the server is not
// whole: UNAVAILABLE for ErrIncomplete; one with an Epoch is written nevertheless. A FullError where Config.Cards has
// no room for it: that does not hold for one with an Epoch, which was let in before. Three round trips.
func (s Registrations) Register(ctx context.Context, r Registration, lasts time.Duration) (epoch uint64, told agora.AgentStatus, err error) {
	card, err := encodeCard(r.Card)
	if err != nil {
		return 0, "", err
	}
	e, _ := ofCard(ofRegistration, r.Tenant, r.Card.ID, r.Principal, card)
	if err := s.cards.take(ctx, e, r.Epoch != 0); err != nil {
		return 0, "", err
	}
	epoch, told, stands, err := s.register(ctx, r, card, lasts)
	s.cards.settle(ctx, e, stands)
	return epoch, told, err
}

// register is Register of one that is counted; stands reports whether it is there now.
func (s Registrations) register(ctx context.Context, r Registration, card storedCard, lasts time.Duration) (epoch uint64, told agora.AgentStatus, stands bool, err error) {
	sure := r.Epoch != 0
	for {
		answer, whole, err := s.tryRegister(ctx, r, card, lasts, sure)
		if err != nil {
			return 0, "", false, err
		}
		switch answer.at(0).str() {
		case "unsure":
			if err := s.surely(ctx, whole); err != nil {
				return 0, "", false, err
			}
			sure = true
			continue
		case "owned":
			return 0, "", false, ErrOwned
		case "ending":
			return 0, "", false, ErrEnding
		}
		return answer.at(1).uint(), shown[answer.at(2).str()], answer.at(0).str() == "ok", nil
	}
}

// shown is what the register script says of what has changed.
var shown = map[string]agora.AgentStatus{"1": agora.Updated, "2": agora.Online}

func (s Registrations) tryRegister(ctx context.Context, r Registration, card storedCard, lasts time.Duration, sure bool) (answer reply, whole bool, err error) {
	m, epoch := member(r.Tenant, r.Card.ID), any("")
	if r.Epoch != 0 {
		epoch = r.Epoch
	}
	replies, err := s.runAll(ctx, []call{
		list(r.Tenant, m),
		{soonestScript, []string{dueKey}, []any{lasts.Milliseconds(), m}},
		{registerScript, []string{recordOf(m), keysOf(m, "").unsettled}, []any{r.Principal, card.card, card.detail, lasts.Milliseconds(), flag(sure), epoch}},
		{wholeScript, []string{wholeKey}, nil},
	})
	if err != nil {
		return reply{}, false, err
	}
	return replies[2], replies[3].yes(), nil
}

// Withdraw ends a registration before its time, and returns its claim. over says that whoever withdrew it continues
// with Lapsed; else the agent has a session, whose card alone counts now. ErrOwned where it is another principal's,
// ErrDeposed where there is none.
func (s Registrations) Withdraw(ctx context.Context, tenant, principal string, id agora.AgentID) (c Claim, over bool, err error) {
	m := member(tenant, id)
	replies, err := s.runAll(ctx, []call{
		list(tenant, m),
		{soonestScript, []string{dueKey}, []any{0, m}},
		{withdrawScript, []string{recordOf(m)}, []any{principal}},
	})
	if err != nil {
		return Claim{}, false, err
	}
	outcome := replies[2].at(0).str()
	switch outcome {
	case "none":
		return Claim{}, false, ErrDeposed
	case "owned":
		return Claim{}, false, ErrOwned
	}
	if outcome == "ok" {
		s.cards.compare(ctx, cardField(ofRegistration, m, principal))
	}
	return Claim{Tenant: tenant, Agent: id, Epoch: replies[2].at(1).uint()}, outcome == "over", nil
}

// Lapsed takes a registration that is over out of the directory, while its agent has no session, and returns its claim:
// who finds it tells of it, and then calls Unregister. ErrDeposed where there is none.
func (s Registrations) Lapsed(ctx context.Context, tenant string, id agora.AgentID) (Claim, error) {
	c, _, err := s.lapsed(ctx, Claim{Tenant: tenant, Agent: id}, "")
	if err == nil {
		_, err = s.run(ctx, list(tenant, member(tenant, id))) // who dies before it leaves it to the next sweep
	}
	return c, err
}

// Unregister forgets a registration that is over and was told of. ErrDeposed where it is not there any more.
func (s Registrations) Unregister(ctx context.Context, c Claim) error {
	m := member(c.Tenant, c.Agent)
	if _, err := s.run(ctx, list(c.Tenant, m)); err != nil {
		return err
	}
	_, principal, err := s.lapsed(ctx, c, c.Epoch)
	if err != nil {
		return err
	}
	s.cards.compare(ctx, cardField(ofRegistration, m, principal))
	// Sweep drops the agent from the directory then, as behind the end of a session.
	_, err = s.run(ctx, indexAdd(dueKey, s.settled+time.Second, m))
	return err
}

func (s Registrations) lapsed(ctx context.Context, c Claim, epoch any) (_ Claim, principal string, err error) {
	m := member(c.Tenant, c.Agent)
	r, err := s.run(ctx, call{lapsedScript, []string{recordOf(m)}, []any{epoch, (s.cfg.Known + s.cfg.Remember).Milliseconds()}})
	if err != nil {
		return Claim{}, "", err
	}
	if c.Epoch = r.at(0).uint(); c.Epoch == 0 {
		return Claim{}, "", ErrDeposed
	}
	return c, r.at(1).str(), nil
}
