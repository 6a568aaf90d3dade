package edge

import (
	"github.com/agora-relay/agora/edge/admission"
)

// sheds returns what the edge's shedder looks at and does: what is held for spaces, of cards, and for agents that have gone
// and whose messages are still under way counts for nobody; queues for agents and spaces shrink.
func (n *Node) sheds() admission.ShedderConfig {
	return admission.ShedderConfig{
		Unattributed: func() int64 {
			held := n.hub.Held() + n.calls.Held() + n.stats.cards.Load() + n.owner.Registered() + n.directory.Stats().Bytes
			for _, s := range n.sessions.allStopped() {
				held += s.Held()
			}
			return held
		},
		ShrinkQueues: func(share int) {
			n.cfg.Broker.Squeeze(share, admission.FullShare)
			n.hub.Squeeze(share, admission.FullShare)
		},
	}
}

// Held returns the bytes that the edge keeps for the session: what has come
// for its agent and was not pulled yet, and what the agent has sent that is not
// stored yet. It does not block.
func (s *Session) Held() int64 {
	return int64(s.mailbox.inbox.Held() + s.out.held() + s.cursor.held())
}
