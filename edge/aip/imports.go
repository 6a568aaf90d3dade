package aip

import (
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
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
	spoken  map[agora.AgentID]time.Time // when the subscription has spoken of them last, recently
	workers int
	work    sync.WaitGroup
	ending  bool // all are taken out
	told    bool // it was logged that some are left out
	over    bool // permanently
}

// offer is a node that the gateway offers.
type offer struct {
	peer    *aip.Peer
	through []string // gateways through which it is reached
	size    int64    // bytes that it is kept in, about
}

// Bounds of what a link brings here.
const (
	importers = 16               // that are brought at the same time
	bringTime = 15 * time.Second // for one, longer than a lease
	againSoon = 2 * time.Second  // until one that could not be brought is tried again
	againLate = 15 * time.Second // until one is whose id is somebody else's, unless it is seen to be free before
	lagTime   = 5 * time.Second  // that one server of a gateway may be behind another
)

func (m *imports) init(k *link) {
	m.link = k
	m.offered, m.brought = map[agora.AgentID]*offer{}, map[agora.AgentID]*node{}
	m.queued, m.busy = map[agora.AgentID]struct{}{}, map[agora.AgentID]struct{}{}
	m.again, m.spoken = map[agora.AgentID]time.Time{}, map[agora.AgentID]time.Time{}
}

// count returns how many nodes are offered, and how many of them are here.
func (m *imports) count() (offered, brought int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.offered), len(m.brought)
}

// anew says that another subscription begins: what an earlier one has spoken of may have changed since.
func (m *imports) anew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.spoken)
}

// all takes a list of all nodes that the gateway offers, which was asked for at a time. Of what the subscription has
// spoken of since, and shortly before, its word counts: a gateway of several servers may answer by one that does not
// know yet.
func (m *imports) all(peers []*aip.Peer, asked time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.spoken, func(_ agora.AgentID, at time.Time) bool { return asked.Sub(at) > lagTime })
	listed := make(map[agora.AgentID]struct{}, len(peers))
	for _, p := range peers {
		id := idOf(p)
		listed[id] = struct{}{}
		if _, is := m.spoken[id]; !is && id != "" {
			m.offer(id, p)
		}
	}
	for id := range m.offered {
		_, is := listed[id]
		if _, late := m.spoken[id]; !is && !late {
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
	m.spoken[id] = time.Now()
	m.offer(id, p)
}

// offer notes that the gateway offers a node, or does not where p is nil; the caller holds mu. A node that is reached
// through this gateway, or too far away, is none.
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
		m.release(was)
		delete(m.offered, id)
	case !m.reserve(o, was):
		return
	default:
		m.offered[id] = o
	}
	m.queue(id)
}

// reserve counts an offer for the link, in place of an earlier one or of none, and reports whether there is room for
// it: what is beyond is left out, which is logged once. The caller holds mu.
func (m *imports) reserve(o, was *offer) bool {
	u, by := m.link.links.node.Usage(), m.owner()
	more, grows := int64(1), o.size
	if was != nil {
		more, grows = 0, o.size-was.size
	}
	err := u.Take(admission.Offers, by, more)
	if err == nil {
		if err = u.Take(admission.OfferBytes, by, grows); err != nil {
			u.Give(admission.Offers, by, more)
		}
	}
	if err != nil && !m.told {
		m.told = true
		m.link.links.cfg.Log.Warn("nodes that a gateway offers are left out", "address", m.link.Address, "tenant", m.link.Tenant, "err", err)
	}
	if err == nil {
		u.Add(admission.Bytes, by, grows)
	}
	return err == nil
}

// release counts an offer no more; the caller holds mu.
func (m *imports) release(o *offer) {
	u, by := m.link.links.node.Usage(), m.owner()
	u.Give(admission.Offers, by, 1)
	u.Give(admission.OfferBytes, by, o.size)
	u.Give(admission.Bytes, by, o.size)
}

// owner is as whose counts what a link is offered: its own.
func (m *imports) owner() admission.Owner {
	return admission.Owner{Tenant: m.link.Tenant, Principal: m.link.Principal()}
}

// offers returns a node that the gateway offers; nil for one that is not to be here.
func (k *link) offers(p *aip.Peer) *offer {
	p, through := aip.Through(p)
	if through == nil {
		through = []string{k.Address} // a gateway that says nothing of the sort
	}
	at := p.GetAgentInfo().GetAddress()
	if b := p.GetToolboxInfo(); b != nil {
		at = b.GetAddress()
	}
	if len(through) > aip.MaxHops || slices.Contains(through, k.links.cfg.GatewayID) || at == k.links.catalog.address() {
		return nil
	}
	return &offer{p, through, int64(proto.Size(p)) + offerCost}
}

func idOf(p *aip.Peer) agora.AgentID { return agora.AgentID(aip.IDOf(p)) }

// queue has a node looked at; the caller holds mu.
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
	other := n != nil && n.offer != o
	m.mu.Unlock()
	switch {
	case n != nil && ending:
		n.end(edge.Drained, over)
		<-n.gone
	case ending:
	case n != nil && o == nil:
		n.end(edge.Goodbye, true)
		<-n.gone
	case other:
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
	m.link.links.cfg.Log.Debug("node of a gateway is not here", "agent", id, "address", m.link.Address, "err", err)
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

// end takes all nodes out, permanently or for others to go on with, and returns when that is done.
func (m *imports) end(over bool) {
	m.mu.Lock()
	m.ending, m.over = true, over
	for id := range m.brought {
		m.queue(id)
	}
	m.mu.Unlock()
	m.work.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, o := range m.offered {
		m.release(o)
		delete(m.offered, id)
	}
}

// offerCost is about what an offer takes beside what the gateway says.
const offerCost = 512
