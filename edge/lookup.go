package edge

import (
	"context"
	"errors"
	"iter"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/presence"
)

// Directory is the directory of an actor's tenant, as the actor may see it.
type Directory struct {
	actor   *Actor
	counted bool // what looks into it has counted
}

// Directory returns the directory of the actor's tenant. Each look into it counts as a message.
func (a *Actor) Directory() Directory { return Directory{actor: a} }

// Counted returns the directory for a request that has counted already, and so looks into it for nothing.
func (d Directory) Counted() Directory { return Directory{d.actor, true} }

// mayLook lets the actor look into the directory once: FORBIDDEN, RATE_LIMITED.
func (d Directory) mayLook() error {
	if d.counted {
		return d.actor.maySee()
	}
	return d.actor.mayLook()
}

// All returns the directory: the agents of the tenant that have a session or are registered without one, sorted by id,
// without schemas. It is right within a second of a change: see package directory. FORBIDDEN, RATE_LIMITED,
// UNAVAILABLE.
func (d Directory) All(ctx context.Context) ([]agora.Agent, error) {
	if err := d.mayLook(); err != nil {
		return nil, err
	}
	return d.actor.node.directory.All(ctx, d.actor.Principal().Tenant)
}

// Listed is All for who knows most of the cards already, and decodes only those that are new. The same errors.
func (d Directory) Listed(ctx context.Context) (iter.Seq[presence.Listed], error) {
	if err := d.mayLook(); err != nil {
		return nil, err
	}
	return d.actor.node.directory.Listed(ctx, d.actor.Principal().Tenant)
}

// Select returns those agents of the directory that a filter takes, as All does, each decoded when it is come to. The
// same errors.
func (d Directory) Select(ctx context.Context, f directory.Filter) (iter.Seq[agora.Agent], error) {
	if err := d.mayLook(); err != nil {
		return nil, err
	}
	return d.actor.node.directory.Select(ctx, d.actor.Principal().Tenant, f)
}

// Card returns an agent's whole card. AGENT_NOT_FOUND where it is not in the directory, and the same errors.
func (d Directory) Card(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	if err := d.mayLook(); err != nil {
		return agora.Agent{}, err
	}
	return d.actor.node.directory.Card(ctx, d.actor.Principal().Tenant, id)
}

// Addressee returns the whole card of an agent that the actor may send to: it takes no permission to see the directory.
// AGENT_NOT_FOUND where it is not there, FORBIDDEN, UNAVAILABLE.
func (d Directory) Addressee(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	if err := d.actor.MayAddress(id); err != nil {
		return agora.Agent{}, err
	}
	return d.actor.node.directory.Card(ctx, d.actor.Principal().Tenant, id)
}

// IsAway reports whether an agent that is not in the directory has a mailbox nevertheless: it was here recently, and
// what it has said of itself is not known any more. UNAVAILABLE.
func (d Directory) IsAway(ctx context.Context, id agora.AgentID) (bool, error) {
	found, err := d.actor.node.cfg.Presence.Addressees.Lookup(ctx, d.actor.Principal().Tenant, id)
	if err != nil {
		return false, agora.AsError(err)
	}
	return found.State != presence.Unknown, nil
}

// Own returns the whole card of an agent that the actor may be. AGENT_NOT_FOUND where it is not in the directory,
// FORBIDDEN, UNAVAILABLE.
func (d Directory) Own(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	if err := errors.Join(d.actor.Check(), d.actor.mayBe(id)); err != nil {
		return agora.Agent{}, agora.AsError(err)
	}
	return d.actor.node.directory.Card(ctx, d.actor.Principal().Tenant, id)
}

// Cards returns the whole cards of agents, but for those that are not in the directory any more. FORBIDDEN,
// RATE_LIMITED, UNAVAILABLE. It takes a round trip for each.
func (d Directory) Cards(ctx context.Context, ids []agora.AgentID) (cards []agora.Agent, err error) {
	if err := d.mayLook(); err != nil {
		return nil, err
	}
	for _, id := range ids {
		card, err := d.actor.node.directory.Card(ctx, d.actor.Principal().Tenant, id)
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

// Find returns the agents that fit a query best, the best first. INVALID_REQUEST, and the same errors.
func (d Directory) Find(ctx context.Context, q directory.Query) ([]agora.Agent, error) {
	if err := d.mayLook(); err != nil {
		return nil, err
	}
	return d.actor.node.directory.Find(ctx, d.actor.Principal().Tenant, q)
}

// Watch begins to watch the directory; the caller closes the watch. The same errors. What the actor may see is asked
// now, and not again: a door that watches for long closes it with the actor's connection.
func (d Directory) Watch(ctx context.Context) (*directory.Watch, error) {
	if err := d.mayLook(); err != nil {
		return nil, err
	}
	return d.actor.node.directory.Watch(ctx, d.actor.Principal().Tenant)
}
