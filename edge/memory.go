package edge

import (
	"github.com/agora-relay/agora/edge/admission"
	"maps"
	"slices"
)

// Shedder returns the load shedder of the edge, which has its connections, whatever their door.
func (n *Node) Shedder() *admission.Shedder { return n.shedder }

// newShedder returns the shedder that the node's settings ask for.
func (n *Node) newShedder() *admission.Shedder {
	return admission.NewShedder(admission.ShedderConfig{
		Connections: n.cfg.Limits.Connections, Queued: n.cfg.Limits.Queued,
		Unattributed: n.heldForNobody,
		ShrinkQueues: func(share int) {
			n.cfg.Broker.Squeeze(share, admission.FullShare)
			n.hub.Squeeze(share, admission.FullShare)
		},
	})
}

// heldForNobody returns what is held for spaces, of cards, and for agents that have gone
// and whose messages are still under way.
func (n *Node) heldForNobody() int64 {
	held := n.hub.Held() + n.calls.Held() + n.stats.cards.Load() + n.registered.bytes() + n.directory.Stats().Bytes
	for _, s := range n.allStopped() {
		held += s.Held()
	}
	return held
}

// markStopped notes that a session has stopped: until it is forgotten, its node looks after what it had under way.
func (n *Node) markStopped(s *Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Contains(n.sessions[s.address()], s) { // else a hand-over has detached it meanwhile
		n.stopped[s] = struct{}{}
	}
}

// allStopped returns the sessions that have stopped and are not detached yet.
func (n *Node) allStopped() []*Session {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.AppendSeq(make([]*Session, 0, len(n.stopped)), maps.Keys(n.stopped))
}

// Held returns the bytes that the edge keeps for the session: what has come
// for its agent and was not pulled yet, and what the agent has sent that is not
// stored yet. It does not block.
func (s *Session) Held() int64 {
	held := s.inbox.Held()
	if out := s.outgoing.Load(); out != nil {
		held += out.Held()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.subscriptions {
		held += p.Held()
	}
	return int64(held)
}
