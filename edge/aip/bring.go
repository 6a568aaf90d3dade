package aip

import (
	"context"
	"maps"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire/aip"
)

// bring opens the session of a node, unless somebody else has its id: the link of another gateway that is older, or an
// agent that is here.
func (m *imports) bring(id agora.AgentID, o *offer) error {
	k := m.link
	card, err := cardOf(o.peer, &k.Link, o.through)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.ctx, bringTime)
	defer cancel()
	actor := k.links.node.Linked(k.Link)
	switch has, err := actor.Directory().Card(ctx, id); {
	case err == nil && !k.mayTake(&has):
		return agora.Errorf(agora.AgentExists, "somebody else has this id")
	case err != nil && agora.AsError(err).Code != agora.AgentNotFound:
		return err
	}
	ch, err := k.links.channels.get(place{tenant: k.Tenant, address: k.Address})
	if err != nil {
		return err
	}
	n := &node{toolbox: card.Type == aip.TypeToolbox, channel: ch, via: m, offer: o}
	err = k.links.registry.connect(ctx, n, func(h edge.Hello, conn edge.Conn) (*edge.Session, error) {
		h.Card = card
		s, _, err := actor.Open(ctx, h, conn)
		return s, err
	})
	if err != nil {
		ch.release()
	}
	return err
}

// mayTake reports whether the link may have an id that another one has, by its card, if it is not its own already.
func (k *link) mayTake(has *agora.Agent) bool {
	o := originOf(has)
	return o != nil && !o.before(&k.Link)
}

// renew has the card of a node be as it is offered now.
func (m *imports) renew(n *node, o *offer) error {
	card, err := cardOf(o.peer, &m.link.Link, o.through)
	if err != nil {
		return err
	}
	if (card.Type == aip.TypeToolbox) != n.toolbox { // it is another node of that id
		n.end(edge.Goodbye, true)
		<-n.gone
		return nil
	}
	ctx, cancel := context.WithTimeout(m.link.ctx, bringTime)
	defer cancel()
	if err := n.session.Update(ctx, card, false); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n.offer = o
	return nil
}

// watch looks again at nodes that could not be brought, when their ids are free here, or may be. It ends with the link.
func (m *imports) watch() {
	actor := m.link.links.node.Linked(m.link.Link)
	changes := make(chan []directory.Change)
	m.link.work.Go(func() { watchHere(m.link.ctx, actor, changes) })
	every := time.NewTicker(againSoon / 2)
	defer every.Stop()
	for {
		select {
		case all := <-changes:
			for i := range all {
				m.changed(&all[i])
			}
		case <-every.C:
			m.retry()
		case <-m.link.ctx.Done():
			return
		}
	}
}

// changed takes what has become of an agent here.
func (m *imports) changed(c *directory.Change) {
	id := c.Agent.ID
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offered[id] == nil || m.brought[id] != nil {
		return
	}
	if c.Kind == directory.Removed || m.link.mayTake(&c.Agent) {
		delete(m.again, id)
		m.queue(id)
	}
}

// retry looks again at those whose time has come.
func (m *imports) retry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(m.again, func(id agora.AgentID, at time.Time) bool {
		if now.Before(at) {
			return false
		}
		m.queue(id)
		return true
	})
}

// watchHere tells what changes in the directory here, until ctx is over.
func watchHere(ctx context.Context, actor *edge.Actor, changes chan<- []directory.Change) {
	for {
		w, err := actor.Directory().Watch(ctx)
		for err == nil {
			var all []directory.Change
			if all, err = w.Next(ctx); err == nil {
				select {
				case changes <- all:
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
		}
		if w != nil {
			w.Close()
		}
		if !pause.For(ctx, time.Second) {
			return
		}
	}
}
