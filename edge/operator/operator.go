// Package operator answers what operators ask of a cluster, and does what they tell it: what became of a message and
// why, what is known of an agent, a space or an edge, the end of a session, the emptying of a mailbox.
package operator

import (
	"log/slog"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/presence"
)

// Service does so by one edge of the cluster, and asks the others through it. It holds no state: its methods may be
// called at the same time, until the node is closed.
type Service struct {
	node     *edge.Node
	broker   *broker.Broker
	presence *presence.Store
	maxAge   time.Duration // of a message in the log
	log      *slog.Logger
}

// New returns a service of a node's.
func New(n *edge.Node) *Service {
	cfg := n.Config()
	return &Service{node: n, broker: cfg.Broker, presence: cfg.Presence, maxAge: cfg.MaxAge, log: cfg.Log}
}

// answerTime bounds the wait for another edge's word.
const answerTime = time.Second
