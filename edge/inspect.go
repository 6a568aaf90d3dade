package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// statusOf returns a session as this edge sees it.
func statusOf(s *Session) *SessionStatus {
	v := &SessionStatus{
		Since: time.Unix(0, s.since), Begun: s.mailbox.begun.Load(), Queued: s.mailbox.inbox.Held(), Blocked: s.out.blocked.Load() > 0, Withheld: s.mailbox.refused.Load(),
		HeardMS: s.keepalive.quiet().Milliseconds(),
	}
	v.Confirmed, v.Written, _ = s.cursor.mailbox()
	v.Acks, v.Over = s.cursor.proof.is(ByAck), s.life.ended()
	return v
}

// Inquiries ask an edge of the cluster, which may be this one, about itself and its sessions, and have it do something
// for an operator. Each error may be broker.ErrNoEdge, where nobody is there.
type Inquiries struct{ edges *edges }

// Inquiries returns what asks edges for operators.
func (n *Node) Inquiries() Inquiries { return Inquiries{&n.edges} }

// Session returns the session of an epoch that an edge holds; nil where it has none.
func (i Inquiries) Session(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64) (*SessionStatus, error) {
	r, err := i.edges.askOf(ctx, "inspect", h, at, epoch)
	return r.Live, err
}

// Edge returns the status of an edge.
func (i Inquiries) Edge(ctx context.Context, h presence.Holder) (*EdgeStatus, error) {
	r, err := i.edges.ask(ctx, h, question{Verb: "self"})
	return r.Self, err
}

// Kick has an edge end the session of an epoch that it holds: its connection is closed as [Kicked].
func (i Inquiries) Kick(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64) error {
	_, err := i.edges.askOf(ctx, "kick", h, at, epoch)
	return err
}

// Move has an edge tell agents to reconnect to other edges, some a second. It returns how many will be: see
// [Balancer.MoveAtOnce].
func (i Inquiries) Move(ctx context.Context, h presence.Holder, n, perSecond int) (moves int, err error) {
	r, err := i.edges.ask(ctx, h, question{Verb: "rebalance", Moves: n, Rate: perSecond})
	return r.Moves, err
}
