package edge

import (
	"context"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// Kick ends an agent's session, wherever in the cluster it is: its connection is closed as [Kicked], what it has
// open is aborted for its receivers, it leaves its spaces, and its id is free. Its mailbox stays. The agent may connect again:
// who is to be kept out must lose its token. It returns when the session is over. AGENT_NOT_FOUND, AGENT_OFFLINE where there is none, UNAVAILABLE.
func (n *Node) Kick(ctx context.Context, tenant string, id agora.AgentID) error {
	sight, err := n.cfg.Presence.Look(ctx, tenant, id)
	switch {
	case err != nil:
		return err
	case !sight.Known:
		return agora.UnknownAgent(id)
	case sight.Phase == presence.None:
		return agora.Errorf(agora.AgentOffline, "agent %q has no session", id)
	case sight.Phase == presence.Active:
		// Where its edge does not answer, the session is ended without it: that edge finds its claim gone.
		_, err := n.ask(ctx, sight.Holder, question{Verb: "kick", Tenant: tenant, Agent: id, Epoch: sight.Epoch})
		if err != nil && !errors.Is(err, broker.ErrNoEdge) && ctx.Err() != nil {
			return err
		}
	}
	if err := n.cfg.Presence.EndSession(ctx, tenant, id); err != nil && !errors.Is(err, presence.ErrDeposed) {
		return err
	}
	n.cfg.Log.Info("session ended by an operator", "agent", id, "tenant", tenant, "session", sight.Session)
	return n.finish(ctx, tenant, id, false)
}

// endings says why a session is ended that another edge asks this one to end.
var endings = map[string]Reason{
	"kick":  {Cause: Kicked, Text: "an operator has ended the session"},
	"evict": {Cause: TakenOver, Text: "another agent answers at its address"},
	"end":   {Cause: Goodbye, Text: "its agent has ended the session by another edge"},
}

// endHere closes the session's connection for good, and settles it.
func (s *Session) endHere(ctx context.Context, why Reason) {
	s.leaves(why.Cause)
	s.conn.Close(why)
	if s.stop(true) {
		s.depart(ctx)
	}
}

// endAsked ends the session of an epoch that this edge holds.
func (n *Node) endAsked(ctx context.Context, at agora.Address, epoch uint64, why Reason) bool {
	for _, s := range n.of(at, epoch+1) {
		if s.claim.Epoch == epoch {
			s.endHere(ctx, why)
			return true
		}
	}
	return false
}

// Purge drops what an agent has not read of its mailbox, what it has read before along with it, and returns how many records were unread. The agent is told
// by a gap when it reads next. AGENT_NOT_FOUND, UNAVAILABLE.
func (n *Node) Purge(ctx context.Context, tenant string, id agora.AgentID) (unread int, err error) {
	v, _, err := n.viewAgent(ctx, tenant, id)
	if err != nil {
		return 0, err
	}
	unread, err = n.cfg.Broker.Purge(ctx, agora.ToAgent(tenant, id), v.Confirmed)
	if err == nil {
		n.cfg.Log.Info("mailbox purged by an operator", "agent", id, "tenant", tenant, "unread_records", unread)
	}
	return unread, err
}
