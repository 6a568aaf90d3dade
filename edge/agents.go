package edge

import (
	"context"
	"errors"
	"iter"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/presence"
)

// mayLook lets an actor look into the directory once: FORBIDDEN, RATE_LIMITED.
func (a *Actor) mayLook() error {
	if err := errors.Join(a.maySee(), a.quota.Spend(0)); err != nil {
		return agora.AsError(err)
	}
	return nil
}

// Agents returns the directory: the agents of the tenant that have a session or are registered without one, sorted by id, without schemas.
// It is right within a second of a change: see package directory. FORBIDDEN, RATE_LIMITED, UNAVAILABLE.
func (a *Actor) Agents(ctx context.Context) ([]agora.Agent, error) {
	if err := a.mayLook(); err != nil {
		return nil, err
	}
	return a.node.directory.All(ctx, a.Principal().Tenant)
}

// ListedAgents is Agents for who knows most of the cards already, and decodes only those that are new. The same errors.
func (a *Actor) ListedAgents(ctx context.Context) (iter.Seq[presence.Listed], error) {
	if err := a.mayLook(); err != nil {
		return nil, err
	}
	return a.node.directory.Listed(ctx, a.Principal().Tenant)
}

// SelectAgents returns those agents of the directory that a filter takes, and whether there are more. The same errors.
func (a *Actor) SelectAgents(ctx context.Context, f directory.Filter) (list []agora.Agent, more bool, err error) {
	if err := a.mayLook(); err != nil {
		return nil, false, err
	}
	return a.node.directory.Select(ctx, a.Principal().Tenant, f)
}

// Agent returns an agent's whole card. AGENT_NOT_FOUND where it is not in the directory, and the same errors.
func (a *Actor) Agent(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	if err := a.mayLook(); err != nil {
		return agora.Agent{}, err
	}
	return a.node.directory.Card(ctx, a.Principal().Tenant, id)
}

// Addressee returns the whole card of an agent that the actor may send to: it takes no permission to see the directory. AGENT_NOT_FOUND where
// it is not there, FORBIDDEN, UNAVAILABLE.
func (a *Actor) Addressee(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	if err := a.MayAddress(id); err != nil {
		return agora.Agent{}, err
	}
	return a.node.directory.Card(ctx, a.Principal().Tenant, id)
}

// MayAddress returns nil while the actor may send to an agent: for a door that knows already who that is. FORBIDDEN, and the errors of Check. It does not block.
func (a *Actor) MayAddress(id agora.AgentID) error {
	if err := a.Check(); err != nil {
		return err
	}
	return a.forbidden(a.grant().Refuses(policy.Send, string(id)), addressing, string(id))
}

// Own returns the whole card of an agent that the actor may be. AGENT_NOT_FOUND where it is not in the directory, FORBIDDEN, UNAVAILABLE.
func (a *Actor) Own(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	if err := errors.Join(a.Check(), a.mayBe(id)); err != nil {
		return agora.Agent{}, agora.AsError(err)
	}
	return a.node.directory.Card(ctx, a.Principal().Tenant, id)
}

// Cards returns the whole cards of agents, but for those that are not in the directory any more. FORBIDDEN, RATE_LIMITED, UNAVAILABLE. It takes a round
// trip for each.
func (a *Actor) Cards(ctx context.Context, ids []agora.AgentID) (cards []agora.Agent, err error) {
	if err := a.mayLook(); err != nil {
		return nil, err
	}
	for _, id := range ids {
		card, err := a.node.directory.Card(ctx, a.Principal().Tenant, id)
		if code(err) == agora.AgentNotFound {
			continue
		}
		if err != nil {
			return nil, agora.AsError(err)
		}
		cards = append(cards, card)
	}
	return cards, nil
}

// FindAgents returns the agents that fit a query best, the best first. INVALID_REQUEST, and the same errors.
func (a *Actor) FindAgents(ctx context.Context, q directory.Query) ([]agora.Agent, error) {
	if err := a.mayLook(); err != nil {
		return nil, err
	}
	return a.node.directory.Find(ctx, a.Principal().Tenant, q)
}

// WatchAgents begins to watch the directory; the caller closes the watch. The same errors. What the actor may see is asked now, and not
// again: a door that watches for long closes it with the actor's connection.
func (a *Actor) WatchAgents(ctx context.Context) (*directory.Watch, error) {
	if err := a.mayLook(); err != nil {
		return nil, err
	}
	return a.node.directory.Watch(ctx, a.Principal().Tenant)
}
