package aip

import (
	"context"
	"slices"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/aip"
)

// registerAgent answers RegisterAgent. An agent that can't be answered has not registered.
func (g gateway) registerAgent(ctx context.Context, in *aip.Frame) (any, error) {
	c := callerOf(ctx)
	card, err := g.register(ctx, c, agora.Registration{Media: aip.MediaAgent, Body: slices.Clone(in.Bytes())})
	if err != nil {
		return nil, err
	}
	answer, err := g.catalog.registerAnswer(ctx, c, &card)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		g.takeBack(ctx, c, card.ID)
		return nil, err
	}
	return answer, nil
}

// takeBack undoes a registration. Where that fails, the node's silence ends it.
func (g gateway) takeBack(ctx context.Context, c *caller, id agora.AgentID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.DialTimeout)
	defer cancel()
	if _, err := found(g.registry.deregister(ctx, c.actor, id)); err != nil {
		g.cfg.Log.Debug("a registration that could not be answered still stands", "agent", id, "err", err)
	}
}

// registerToolbox answers RegisterTool.
func (g gateway) registerToolbox(ctx context.Context, in *aip.Frame) (any, error) {
	if _, err := g.register(ctx, callerOf(ctx), agora.Registration{Media: aip.MediaToolbox, Body: slices.Clone(in.Bytes())}); err != nil {
		return nil, err
	}
	return &aip.RegisterToolResponse{Success: true}, nil
}

func (g gateway) register(ctx context.Context, c *caller, r agora.Registration) (agora.Agent, error) {
	card, err := c.card(r)
	if err == nil {
		err = c.actor.SpendBeside(card.ID)
	}
	if err == nil {
		err = g.registry.register(ctx, c, card)
	}
	if err == nil {
		g.catalog.kept.keep(&card)
	}
	return card, err
}

// card returns the card that a registration says, where the caller may be that agent.
func (c *caller) card(r agora.Registration) (agora.Agent, error) {
	card, err := aip.Card(r)
	if err == nil {
		err = c.may(card.ID)
	}
	return card, err
}

// updateNode answers UpdateNodeInfo: a node says again what it is, by any edge.
func (g gateway) updateNode(ctx context.Context, in *aip.Frame) (any, error) {
	c := callerOf(ctx)
	r, err := aip.ReadUpdate(slices.Clone(in.Bytes()))
	if err != nil {
		return nil, err
	}
	card, err := c.card(r)
	if err == nil {
		err = c.actor.SpendBeside(card.ID)
	}
	if err != nil {
		return nil, err
	}
	switch there, err := found(g.registry.update(ctx, c.actor, card)); {
	case err != nil:
		return nil, err
	case !there:
		return &aip.UpdateNodeInfoResponse{Message: aip.UnknownNode(string(card.ID))}, nil
	}
	return &aip.UpdateNodeInfoResponse{Success: true, Message: "Node updated"}, nil
}

// DeregisterNode implements the protocol's method: a node ends its registration, by any edge.
func (g gateway) DeregisterNode(ctx context.Context, in *aip.DeregisterNodeRequest) (*aip.DeregisterNodeResponse, error) {
	c := callerOf(ctx)
	id, err := c.leaves(in.GetNodeId())
	if err == nil {
		err = c.actor.SpendBeside(id)
	}
	if err != nil {
		return nil, err
	}
	there, err := found(g.registry.deregister(ctx, c.actor, id))
	if err != nil {
		return nil, err
	}
	return &aip.DeregisterNodeResponse{Success: there}, nil
}

// Heartbeat implements the protocol's method: a node gives a sign of life, by any edge.
func (g gateway) Heartbeat(ctx context.Context, in *aip.HeartbeatRequest) (*aip.HeartbeatResponse, error) {
	c := callerOf(ctx)
	id, err := c.own(in.GetSenderId())
	if err == nil {
		err = c.actor.SpendBeside(id)
	}
	if err != nil {
		return nil, err
	}
	switch there, err := found(g.registry.alive(ctx, c.actor, id)); {
	case err != nil:
		return nil, err
	case !there:
		return &aip.HeartbeatResponse{Message: aip.UnknownNode(string(id))}, nil
	}
	return &aip.HeartbeatResponse{Success: true, Message: "Heartbeat received"}, nil
}

// found returns false, and no error, for the error that there is no such node.
func found(err error) (bool, error) {
	if err != nil && agora.AsError(err).Code == agora.AgentNotFound {
		return false, nil
	}
	return err == nil, err
}
