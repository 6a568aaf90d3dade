package edge

import (
	"github.com/agora-relay/agora/edge/admission"
)

// Shedder returns the load shedder of the edge, which has its connections, whatever their door.
func (n *Node) Shedder() *admission.Shedder { return n.limits.shedder }

// shrinkQueues bounds the queues for agents and spaces to a share of what they usually hold.
func (n *Node) shrinkQueues(share int) {
	n.cfg.Broker.Squeeze(share, admission.FullShare)
	n.hub.Squeeze(share, admission.FullShare)
}

// heldForNobody returns what is held for spaces, of cards, and for agents that have gone
// and whose messages are still under way.
func (n *Node) heldForNobody() int64 {
	held := n.hub.Held() + n.calls.Held() + n.stats.cards.Load() + n.owner.Registered() + n.directory.Stats().Bytes
	for _, s := range n.sessions.allStopped() {
		held += s.Held()
	}
	return held
}

// Held returns the bytes that the edge keeps for the session: what has come
// for its agent and was not pulled yet, and what the agent has sent that is not
// stored yet. It does not block.
func (s *Session) Held() int64 {
	return int64(s.mailbox.inbox.Held() + s.out.held() + s.cursor.held())
}
