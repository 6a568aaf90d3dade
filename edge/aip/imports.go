package aip

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire/aip"
)

// imports are the nodes that a link has its edge bring here, and those that are.
type imports struct {
	link *link

	mu      sync.Mutex // guards the fields below
	offered map[agora.AgentID]*offer
	brought map[agora.AgentID]*node
	queued  map[agora.AgentID]struct{}  // to be looked at
	busy    map[agora.AgentID]struct{}  // being looked at
	again   map[agora.AgentID]time.Time // when those that could not be brought are looked at again
	workers int
	work    sync.WaitGroup
	ending  bool // all are taken out
	over    bool // for good
}

// offer is a node that the gateway offers.
type offer struct {
	peer    *aip.Peer
	through []string // gateways through which it is reached
}

// Bounds of what a link brings here.
const (
	mostOffered = 16384            // nodes of one gateway; those beyond it are left out
	importers   = 16               // that are brought at the same time
	bringTime   = 15 * time.Second // for one, longer than a lease
	againSoon   = 2 * time.Second  // until one that could not be brought is tried again
	againLate   = 15 * time.Second // until one is whose id is somebody else's, unless it is seen to be free before
)

func (m *imports) init(k *link) {
	m.link = k
	m.offered, m.brought = map[agora.AgentID]*offer{}, map[agora.AgentID]*node{}
	m.queued, m.busy, m.again = map[agora.AgentID]struct{}{}, map[agora.AgentID]struct{}{}, map[agora.AgentID]time.Time{}
}

// count returns how many nodes are offered, and how many of them are here.
func (m *imports) count() (offered, brought int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.offered), len(m.brought)
}

// all takes a list of all nodes that the gateway offers.
func (m *imports) all(peers []*aip.Peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	listed := make(map[agora.AgentID]struct{}, len(peers))
	for _, p := range peers {
		if id := idOf(p); id != "" {
			listed[id] = struct{}{}
			m.offer(id, p)
		}
	}
	for id := range m.offered {
		if _, is := listed[id]; !is {
			m.offer(id, nil)
		}
	}
}

// update takes what the gateway tells of one node.
func (m *imports) update(u *aip.NodeUpdate) {
	id := agora.AgentID(u.GetNodeId())
	var p *aip.Peer
	if u.GetUpdateType() != aip.NodeUpdate_REMOVED {
		if p = u.GetPeer(); idOf(p) != id {
			return // it says nothing
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offer(id, p)
}

// offer notes that the gateway offers a node, or does not where p is nil; the caller holds mu. A node that is reached through this gateway, or too far away, is none.
func (m *imports) offer(id agora.AgentID, p *aip.Peer) {
	was := m.offered[id]
	var o *offer
	if p != nil {
		o = m.link.offers(p)
	}
	switch {
	case o == nil && was == nil, o != nil && was != nil && slices.Equal(o.through, was.through) && proto.Equal(o.peer, was.peer):
		return
	case o == nil:
		delete(m.offered, id)
	case was == nil && len(m.offered) >= mostOffered:
		return
	default:
		m.offered[id] = o
	}
	m.queue(id)
}

// offers returns a node that the gateway offers; nil for one that is not to be here.
func (k *link) offers(p *aip.Peer) *offer {
	through := throughOf(p)
	if through == nil {
		through = []string{k.Address} // a gateway that says nothing of the sort
	}
	at := p.GetAgentInfo().GetAddress()
	if b := p.GetToolboxInfo(); b != nil {
		at = b.GetAddress()
	}
	if len(through) > maxHops || slices.Contains(through, k.door.cfg.GatewayID) || at == k.door.address() {
		return nil
	}
	return &offer{p, through}
}

func idOf(p *aip.Peer) agora.AgentID {
	if b := p.GetToolboxInfo(); b != nil {
		return agora.AgentID(b.GetToolboxId())
	}
	return agora.AgentID(p.GetAgentInfo().GetAgentId())
}

// touch has nodes looked at.
func (m *imports) touch(ids ...agora.AgentID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		m.queue(id)
	}
}

// queue is touch for who holds mu.
func (m *imports) queue(id agora.AgentID) {
	m.queued[id] = struct{}{}
	if m.workers < importers {
		m.workers++
		m.work.Go(m.settleAll)
	}
}

// next returns a node to be looked at; none where there is none, or others do. Then there is a worker less.
func (m *imports) next(done agora.AgentID) (id agora.AgentID, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.busy, done)
	for id := range m.queued {
		if _, busy := m.busy[id]; !busy {
			delete(m.queued, id)
			m.busy[id] = struct{}{}
			return id, true
		}
	}
	m.workers--
	return "", false
}

// settleAll has the nodes be as they are offered that are to be looked at.
func (m *imports) settleAll() {
	for id, is := m.next(""); is; id, is = m.next(id) {
		m.settle(id)
	}
}

// settle has one node be as it is offered.
func (m *imports) settle(id agora.AgentID) {
	m.mu.Lock()
	o, n, ending, over := m.offered[id], m.brought[id], m.ending, m.over
	m.mu.Unlock()
	switch {
	case n != nil && ending:
		n.end(edge.Drained, over)
		<-n.gone
	case ending:
	case n != nil && o == nil:
		n.end(edge.Goodbye, true)
		<-n.gone
	case n != nil && n.offer != o:
		m.failed(id, m.renew(n, o))
	case n == nil && o != nil:
		m.failed(id, m.bring(id, o))
	}
}

// failed notes how having a node be as it is offered went.
func (m *imports) failed(id agora.AgentID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.again, id)
	if err == nil || m.link.ctx.Err() != nil {
		return
	}
	wait := againSoon
	switch agora.AsError(err).Code {
	case agora.AgentExists, agora.InvalidRequest:
		wait = againLate
	}
	m.again[id] = time.Now().Add(wait)
	m.link.door.cfg.Log.Debug("node of a gateway is not here", "agent", id, "address", m.link.Address, "err", err)
}

// bring opens the session of a node, unless somebody else has its id: the link of another gateway that is older, or an agent that is here.
func (m *imports) bring(id agora.AgentID, o *offer) error {
	k := m.link
	card, err := cardOf(o.peer, &k.Link, o.through)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.ctx, bringTime)
	defer cancel()
	actor := k.door.node.Linked(k.Link)
	switch has, err := actor.Agent(ctx, id); {
	case err == nil && !k.mayTake(&has):
		return agora.Errorf(agora.AgentExists, "somebody else has this id")
	case err != nil && agora.AsError(err).Code != agora.AgentNotFound:
		return err
	}
	ch, err := k.door.channels.get(k.Tenant, k.Address)
	if err != nil {
		return err
	}
	n := &node{toolbox: card.Type == aip.TypeToolbox, channel: ch, via: m, offer: o}
	err = k.door.connect(ctx, n, func(h edge.Hello, conn edge.Conn) (*edge.Session, error) {
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

// came notes that the session of a node is open.
func (m *imports) came(n *node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.brought[n.at.Agent] = n
	if m.ending {
		m.queue(n.at.Agent)
	}
}

// left notes that it is over here: somebody else has the id, or the link has it no more. It is looked at again.
func (m *imports) left(n *node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.brought[n.at.Agent] != n {
		return
	}
	delete(m.brought, n.at.Agent)
	if !m.ending && m.offered[n.at.Agent] != nil {
		m.again[n.at.Agent] = time.Now().Add(againSoon)
	}
}

// end takes all nodes out, for good or for others to go on with, and returns when that is done.
func (m *imports) end(over bool) {
	m.mu.Lock()
	m.ending, m.over = true, over
	for id := range m.brought {
		m.queue(id)
	}
	m.mu.Unlock()
	m.work.Wait()
}

// watch looks again at nodes that could not be brought, when their ids are free here, or may be. It ends with the link.
func (m *imports) watch() {
	actor := m.link.door.node.Linked(m.link.Link)
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
		w, err := actor.WatchAgents(ctx)
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
