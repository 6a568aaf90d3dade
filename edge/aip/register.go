package aip

import (
	"context"
	"slices"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/wire/aip"
)

// registerAgent answers RegisterAgent.
func (d *Door) registerAgent(ctx context.Context, in *aip.Frame) (any, error) {
	c := callerOf(ctx)
	if err := d.register(ctx, c, agora.Registration{Media: aip.MediaAgent, Body: slices.Clone(in.Bytes())}); err != nil {
		return nil, err
	}
	return d.registerAnswer(ctx, c)
}

// registerToolbox answers RegisterTool.
func (d *Door) registerToolbox(ctx context.Context, in *aip.Frame) (any, error) {
	if err := d.register(ctx, callerOf(ctx), agora.Registration{Media: aip.MediaToolbox, Body: slices.Clone(in.Bytes())}); err != nil {
		return nil, err
	}
	return &aip.RegisterToolResponse{Success: true}, nil
}

// register dials a node and opens its session: where that fails, nothing of it is left.
func (d *Door) register(ctx context.Context, c *caller, r agora.Registration) error {
	card, err := aip.Card(r)
	if err != nil {
		return err
	}
	if err := c.may(card.ID); err != nil {
		return err
	}
	if err := d.mayHold(c); err != nil {
		return err
	}
	address := aip.About(&card).Address
	ch, err := d.channels.get(c.actor.Principal().Tenant, address)
	if err != nil {
		return err
	}
	dialling, cancel := context.WithTimeout(ctx, d.cfg.DialTimeout)
	defer cancel()
	n := &node{toolbox: card.Type == aip.TypeToolbox, channel: ch}
	if n.losts, err = ch.await(dialling); err != nil {
		d.giveUp(n)
		return err
	}
	err = d.connect(ctx, n, func(h edge.Hello, conn edge.Conn) (*edge.Session, error) {
		h.Card, h.Dialled = card, address
		s, _, err := c.actor.Open(ctx, h, conn)
		return s, err
	})
	if err != nil {
		d.giveUp(n)
		return registered(err, &card)
	}
	d.kept.keep(&card)
	return nil
}

// giveUp lets go of a node whose session was not opened.
func (d *Door) giveUp(n *node) {
	n.channel.release()
	d.channels.drop(n.channel.at.tenant, n.channel.at.address)
}

// registered returns the error of a registration in the words of the protocol.
func registered(err error, card *agora.Agent) error {
	if agora.AsError(err).Code != agora.AgentExists {
		return err
	}
	if address, taken := edge.AddressTaken(err); taken {
		return aip.AddressExists(address)
	}
	if card.Type == aip.TypeToolbox {
		return aip.ToolboxExists(string(card.ID))
	}
	return aip.AgentExists(string(card.ID))
}

// mayHold returns RATE_LIMITED where a principal has as many nodes at this edge as it may.
func (d *Door) mayHold(c *caller) error {
	name := c.actor.Principal().Name
	if name == "" {
		return nil // nobody in particular
	}
	if many := d.held.count(name); many >= d.cfg.Nodes {
		return agora.Errorf(agora.RateLimited, "this principal has %d nodes at this edge, as many as it may", many)
	}
	return nil
}

// Adopt implements edge.Adopter: it goes on with the session of a node that another edge had dialled.
func (d *Door) Adopt(ctx context.Context, o *edge.Orphan) error {
	ch, err := d.channels.get(o.Actor.Principal().Tenant, o.Address)
	if err != nil {
		return err
	}
	n := &node{toolbox: o.Card.Type == aip.TypeToolbox, channel: ch, admission: o.Admission()}
	dialling, cancel := context.WithTimeout(ctx, d.cfg.DialTimeout)
	defer cancel()
	if n.losts, err = ch.await(dialling); err != nil {
		d.giveUp(n)
		return err
	}
	err = d.connect(ctx, n, func(h edge.Hello, conn edge.Conn) (*edge.Session, error) {
		s, _, err := o.Open(ctx, h, conn)
		return s, err
	})
	if err != nil {
		d.giveUp(n)
		return err
	}
	d.stats.Redials.Add(1)
	return nil
}

// DeregisterNode implements the protocol's method: a node ends its registration, by any edge.
func (g gateway) DeregisterNode(ctx context.Context, in *aip.DeregisterNodeRequest) (*aip.DeregisterNodeResponse, error) {
	c := callerOf(ctx)
	id, err := agora.ParseOwnID(in.GetNodeId())
	if err == nil {
		err = c.may(id)
	}
	if err != nil {
		return nil, err
	}
	if err := g.deregister(ctx, c.actor, id); err != nil {
		if agora.AsError(err).Code == agora.AgentNotFound {
			return &aip.DeregisterNodeResponse{}, nil
		}
		return nil, err
	}
	return &aip.DeregisterNodeResponse{Success: true}, nil
}

// deregister ends a node's session for good, wherever it is held. AGENT_NOT_FOUND where there is none.
func (d *Door) deregister(ctx context.Context, a *edge.Actor, id agora.AgentID) error {
	at := agora.ToAgent(a.Principal().Tenant, id)
	if n := d.held.of(at); n != nil {
		n.end(edge.Goodbye, true)
		<-n.gone
		return nil
	}
	defer d.recent.doubt(at)
	return a.End(ctx, id)
}

// Heartbeat implements the protocol's method: a node gives a sign of life, by any edge.
func (g gateway) Heartbeat(ctx context.Context, in *aip.HeartbeatRequest) (*aip.HeartbeatResponse, error) {
	c := callerOf(ctx)
	id, err := agora.ParseOwnID(in.GetSenderId())
	if err == nil {
		err = c.may(id)
	}
	if err != nil {
		return nil, err
	}
	if n := g.held.of(agora.ToAgent(c.actor.Principal().Tenant, id)); n != nil {
		n.Alive()
		return &aip.HeartbeatResponse{Success: true, Message: "Heartbeat received"}, nil
	}
	if err := c.actor.Alive(ctx, id); err != nil {
		if agora.AsError(err).Code == agora.AgentNotFound {
			return &aip.HeartbeatResponse{Message: aip.UnknownNode(string(id))}, nil
		}
		return nil, err
	}
	return &aip.HeartbeatResponse{Success: true, Message: "Heartbeat received"}, nil
}

// updateNode answers UpdateNodeInfo: a node says anew what it is, by any edge.
func (d *Door) updateNode(ctx context.Context, in *aip.Frame) (any, error) {
	c := callerOf(ctx)
	r, err := aip.ReadUpdate(slices.Clone(in.Bytes()))
	if err != nil {
		return nil, err
	}
	card, err := aip.Card(r)
	if err == nil {
		err = c.may(card.ID)
	}
	if err != nil {
		return nil, err
	}
	if err = d.keeps(ctx, c, &card); err == nil {
		if n := d.held.of(agora.ToAgent(c.actor.Principal().Tenant, card.ID)); n != nil {
			err = n.session.Update(ctx, card, false)
		} else {
			err = c.actor.Update(ctx, card)
		}
	}
	if err != nil {
		if agora.AsError(err).Code == agora.AgentNotFound {
			return &aip.UpdateNodeInfoResponse{Message: aip.UnknownNode(string(card.ID))}, nil
		}
		return nil, err
	}
	return &aip.UpdateNodeInfoResponse{Success: true, Message: "Node updated"}, nil
}

// keeps returns INVALID_REQUEST where a node would have another address, or be of another kind, than it has registered with: then it is to register anew.
func (d *Door) keeps(ctx context.Context, c *caller, card *agora.Agent) error {
	was, err := c.actor.Own(ctx, card.ID)
	switch {
	case err != nil:
		return err
	case was.Dialect != aip.Dialect:
		return agora.UnknownAgent(card.ID)
	case was.Type != card.Type || aip.About(&was).Address != aip.About(card).Address:
		return agora.Errorf(agora.InvalidRequest, "a node keeps its kind and its address: to change them it deregisters, and registers again")
	}
	return nil
}
