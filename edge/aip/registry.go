package aip

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/demux"
	"github.com/agora-relay/agora/wire/aip"
)

// registry is the nodes of the cluster as one edge knows them: those that it holds, and what it has found of others. It
// implements [edge.Adopter].
type registry struct {
	*shared
	channels *channels
	held     held            // nodes whose sessions this edge holds
	recent   recent          // nodes that were found recently: doubted where this edge begins or ends a session of one
	told     livenessReports // to the edges of other nodes
}

// register dials a node and opens its session: where that fails, nothing of it is left.
func (r *registry) register(ctx context.Context, c *caller, card agora.Agent) error {
	n := &node{registry: r, toolbox: card.Type == aip.TypeToolbox, owner: c.actor.Owner(card.ID)}
	if err := n.count(); err != nil {
		return err
	}
	address := aip.About(&card).Address
	ch, err := r.channels.get(place{c.actor.Principal().Tenant, address, string(card.ID)})
	if err != nil {
		n.uncount()
		return err
	}
	defer ch.claims()()
	n.channel, n.renewed = ch, time.Now()
	dialling, cancel := context.WithTimeout(ctx, r.cfg.DialTimeout)
	defer cancel()
	if n.losts, err = ch.await(dialling); err != nil {
		r.giveUp(n)
		return err
	}
	names, err := ch.names(dialling)
	if err == nil {
		secret := aip.SecretOf(ctx)
		err = r.prove(dialling, ch, &secret)
	}
	if err != nil {
		r.giveUp(n)
		return err
	}
	err = r.connect(ctx, n, func(h edge.Hello, conn edge.Conn) (*edge.Session, error) {
		h.Card, h.Dialled, h.Names = card, address, names
		s, _, err := c.actor.Open(ctx, h, conn)
		return s, err
	})
	if err != nil {
		r.giveUp(n)
		return registered(err, &card)
	}
	return nil
}

// giveUp lets go of a node whose session was not opened.
func (r *registry) giveUp(n *node) {
	n.uncount()
	n.channel.release()
	r.channels.drop(n.channel.at)
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

// Adopt implements edge.Adopter: it continues with the session of a node that another edge had dialled.
func (r *registry) Adopt(ctx context.Context, o *edge.Orphan) error {
	ch, err := r.channels.get(place{o.Actor.Principal().Tenant, o.Address, string(o.Card.ID)})
	if err != nil {
		return err
	}
	n := &node{registry: r, toolbox: o.Card.Type == aip.TypeToolbox, channel: ch, admission: o.Admission(), owner: o.Actor.Owner(o.Card.ID)}
	n.countAnyway()
	dialling, cancel := context.WithTimeout(ctx, r.cfg.DialTimeout)
	defer cancel()
	if n.losts, err = ch.await(dialling); err == nil {
		err = r.prove(dialling, ch, nil)
	}
	if err != nil {
		r.giveUp(n)
		return err
	}
	err = r.connect(ctx, n, func(h edge.Hello, conn edge.Conn) (*edge.Session, error) {
		s, _, err := o.Open(ctx, h, conn)
		return s, err
	})
	if err != nil {
		r.giveUp(n)
		return err
	}
	r.stats.Redials.Add(1)
	return nil
}

// connect dials a node, opens its session by open, and serves it until that is over.
func (r *registry) connect(ctx context.Context, n *node, open func(edge.Hello, edge.Conn) (*edge.Session, error)) error {
	n.registry, n.gone, n.begun = r, make(chan struct{}), make(chan struct{})
	n.Demux = demux.New(demux.Config{
		Serve: n.serve, Share: r.node.Shedder().Share, Records: r.node.Config().MaxRecords, Log: r.cfg.Log,
	})
	s, err := open(edge.Hello{Conn: "aip-" + n.channel.at.address, Proof: edge.ByReader, Slow: n.Slow}, n)
	if err != nil {
		n.over.Do(func() {}) // there is nothing to end
		n.Demux.Close()
		return err
	}
	n.session, n.at = s, agora.ToAgent(s.Actor().Principal().Tenant, s.Agent())
	close(n.begun)
	r.recent.doubt(n.at)
	n.Alive()
	alive := true
	if n.via != nil {
		n.via.came(n)
	} else {
		r.held.put(n)
		r.stats.Nodes.Add(1)
		n.lost = func() { n.end(edge.Lost, false) }
		alive = n.channel.onLost(&n.lost, n.losts)
	}
	if !alive { // it was lost while its session was opened: nothing of its mail is for this connection
		n.lost()
		return nil
	}
	n.Begin(s)
	if r.ctx.Err() != nil {
		n.end(edge.Drained, false)
	}
	return nil
}

// deregister ends a node's session permanently, wherever it is held. AGENT_NOT_FOUND where there is none.
func (r *registry) deregister(ctx context.Context, a *edge.Actor, id agora.AgentID) error {
	at := agora.ToAgent(a.Principal().Tenant, id)
	if n := r.held.of(at); n != nil {
		n.end(edge.Goodbye, true)
		<-n.gone
		return nil
	}
	defer r.recent.doubt(at)
	return a.End(ctx, id)
}

// alive notes that a node has given a sign of life, wherever it is held. AGENT_NOT_FOUND where there is none.
func (r *registry) alive(ctx context.Context, a *edge.Actor, id agora.AgentID) error {
	if n := r.held.of(agora.ToAgent(a.Principal().Tenant, id)); n != nil {
		n.Alive()
		return nil
	}
	return a.Alive(ctx, id)
}

// update has a node be as its card says, wherever it is held. AGENT_NOT_FOUND where there is none, INVALID_REQUEST
// where it is to register again.
func (r *registry) update(ctx context.Context, a *edge.Actor, card agora.Agent) error {
	if err := keeps(ctx, a, &card); err != nil {
		return err
	}
	if n := r.held.of(agora.ToAgent(a.Principal().Tenant, card.ID)); n != nil {
		return n.session.Update(ctx, card, false)
	}
	return a.Update(ctx, card)
}

// keeps returns INVALID_REQUEST where a node would have another address, or be of another kind, than it has registered
// with: then it is to register again.
func keeps(ctx context.Context, a *edge.Actor, card *agora.Agent) error {
	was, err := a.Directory().Own(ctx, card.ID)
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
