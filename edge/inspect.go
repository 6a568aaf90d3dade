package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// SessionStatus is a session by the word of the edge that holds it.
type SessionStatus struct {
	Since     time.Time `json:"since"`
	Begun     bool      `json:"begun"`
	Confirmed uint64    `json:"confirmed"`
	Written   uint64    `json:"written"`
	Acks      bool      `json:"acks"`           // it acknowledges by itself; else pongs tell
	Queued    int       `json:"queued_bytes"`   // live records that wait for its socket
	Blocked   bool      `json:"blocked"`        // its socket is not read: too much under way
	Withheld  bool      `json:"withheld"`       // the edge may not deliver at the moment
	HeardMS   int64     `json:"heard_ms"`       // since its last sign of life
	Over      bool      `json:"over,omitempty"` // it only flushes what is under way
}

// status returns the session as this edge sees it.
func (s *Session) status() *SessionStatus {
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

// EdgeStatus is what an edge says of itself.
type EdgeStatus struct {
	Ready     string           `json:"ready"` // "yes", or why not
	Draining  bool             `json:"draining"`
	Since     time.Time        `json:"since"`
	Sessions  int64            `json:"sessions"`
	Started   int64            `json:"sessions_started"`
	Ended     map[string]int64 `json:"sessions_ended"`
	Stored    int64            `json:"messages_stored"`
	LeaseLeft float64          `json:"lease_left_seconds"`
	Log       bool             `json:"log_connected"`
	Skew      float64          `json:"clock_skew_seconds"`
	Lanes     int64            `json:"lanes"`
	Inboxes   int64            `json:"inboxes"`
	Held      int64            `json:"queued_bytes"`
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
