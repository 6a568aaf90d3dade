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
		Since: time.Unix(0, s.since), Begun: s.mailbox.begun.Load(), Queued: s.mailbox.inbox.Held(), Blocked: s.out.blocked.any(), Withheld: s.mailbox.refused.Load(),
		HeardMS: s.keepalive.quiet().Milliseconds(),
	}
	v.Confirmed, v.Written, _ = s.cursor.mailbox()
	v.Acks, v.Over = s.cursor.proof.is(ByAck), s.life.ended()
	return v
}

// AskSession asks an edge, or this one, for the session of an epoch that it holds; nil where it has none. broker.ErrNoEdge where nobody is there.
func (n *Node) AskSession(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64) (*SessionStatus, error) {
	r, err := n.edges.askOf(ctx, "inspect", h, at, epoch)
	return r.Live, err
}

// AskEdge asks an edge, or this one, for its status. broker.ErrNoEdge where nobody is there.
func (n *Node) AskEdge(ctx context.Context, h presence.Holder) (*EdgeStatus, error) {
	r, err := n.edges.ask(ctx, h, question{Verb: "self"})
	return r.Self, err
}

// AskToKick has an edge, or this one, end the session of an epoch that it holds: its connection is closed as [Kicked]. broker.ErrNoEdge where nobody is there.
func (n *Node) AskToKick(ctx context.Context, h presence.Holder, at agora.Address, epoch uint64) error {
	_, err := n.edges.askOf(ctx, "kick", h, at, epoch)
	return err
}
