package edge

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/presence"
)

// binding is a connection bound to an agent's id, under a claim. Nothing of it changes while the session lasts but its
// life, which has a lock.
type binding struct {
	life   lifecycle
	node   *Node
	actor  *Actor
	claim  presence.Claim
	conn   Conn
	name   string                 // of the connection
	token  string                 // with which the session is taken over
	cameBy string                 // the token by which the agent came, which fits as well until it has come again; empty where it showed none
	slot   *admission.Slot        // of the connection among all of the edge; nil where it is never shed
	slow   func() []agora.AgentID // see Hello; nil for none
	since  int64                  // when the session began here, by the log's clock in Unix nanoseconds
	wants  agora.Receipts         // for everything that it sends
}

func (b *binding) address() agora.Address { return agora.ToAgent(b.claim.Tenant, b.claim.Agent) }

// owner is as whose counts what the session holds.
func (b *binding) owner() admission.Owner { return b.actor.Owner(b.claim.Agent) }

// peer is the address of another agent of the same tenant.
func (b *binding) peer(id agora.AgentID) agora.Address { return agora.ToAgent(b.claim.Tenant, id) }

// deposed: another edge holds the claim. The socket is closed; whatever is
// still under way is refused by the log.
func (b *binding) deposed() {
	b.conn.Close(Reason{Cause: TakenOver, Text: "the session goes on elsewhere"})
}

// credentialsLeft returns how long the session's credentials are good yet, if they end.
func (b *binding) credentialsLeft() (time.Duration, bool) {
	end := b.actor.Principal().Expires
	return time.Until(end), !end.IsZero()
}

// revalidate closes the connection of a session whose credentials are not good any more; false then.
func (b *binding) revalidate() bool {
	err := b.actor.Check()
	if err != nil {
		b.node.cfg.Log.Info("session ends with its credentials", "agent", b.claim.Agent, "err", err)
		b.conn.Close(Dismissed(err))
	}
	return err == nil
}

// setCard has the directory show another card of the session's agent, and tells of it where it is another one.
func (b *binding) setCard(ctx context.Context, card agora.Agent) error {
	changed, err := b.node.cfg.Presence.Directory.SetCard(ctx, b.claim, b.actor.Principal().Name, card)
	if changed {
		b.node.owner.Announce(b.claim, agora.Updated)
	}
	return err
}

// note writes into the agent's history, behind.
func (b *binding) note(e presence.Event) {
	e.Edge, e.Conn, e.Session, e.Epoch = b.node.cfg.ID, b.name, b.claim.Session, b.claim.Epoch
	b.node.background(func() { b.node.owner.Note(b.claim, e) })
}

// attrs name the session in the log.
func (b *binding) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("agent", string(b.claim.Agent)), slog.String("tenant", b.claim.Tenant),
		slog.String("principal", b.actor.Principal().Name), slog.String("session", b.claim.Session), slog.String("conn", b.name),
	}
}

// Agent returns the id that the session is bound to.
func (b *binding) Agent() agora.AgentID { return b.claim.Agent }

// ID returns the id of the session, which stays when the agent returns in time.
func (b *binding) ID() string { return b.claim.Session }

// Conn returns the id of its connection.
func (b *binding) Conn() string { return b.name }

// Actor returns who the session acts for.
func (b *binding) Actor() *Actor { return b.actor }

// usable returns an error when the session takes no verbs any more.
func (b *binding) usable() error {
	if _, ok := b.node.owner.Lease().Valid(); !ok {
		return &agora.Error{Code: agora.Unavailable, Message: "the edge has lost touch with the cluster", RetryAfter: time.Second}
	}
	if b.life.ended() {
		return agora.Errorf(agora.Unavailable, "the session is over here")
	}
	return nil
}

// Now returns the cluster's time, the same at every edge whatever its machine's clock says.
func (b *binding) Now() time.Time { return b.node.cfg.Broker.Now() }

// Expires returns when the session's credentials end; zero for never.
func (b *binding) Expires() time.Time { return b.actor.Principal().Expires }

// lifecycle is whether a session takes verbs here, and why it left. The zero value is that of one that does.
type lifecycle struct {
	mu       sync.Mutex // guards the fields below
	over     bool       // no verb is taken any more
	goodbye  bool       // the agent said so: the session ends without a grace
	deserted bool       // a verb found the socket or the claim gone: the session continues elsewhere, or not at all
	why      Cause      // it left: the first one that was known
	stopped  int64      // ticks when it was over
}

// stop has no verb be taken any more; false where that was so before.
func (l *lifecycle) stop(goodbye bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.over, l.goodbye, l.stopped = true, goodbye, agora.Ticks()
	return true
}

// ended reports whether the session takes no verb any more.
func (l *lifecycle) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// saidGoodbye reports whether the session has ended without a grace.
func (l *lifecycle) saidGoodbye() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.goodbye
}

// overFor returns for how long the session has taken no verb; 0 where it does.
func (l *lifecycle) overFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		return 0
	}
	return time.Duration(agora.Ticks() - l.stopped)
}

// away returns how much of a grace is left; 0 where it has not begun.
func (l *lifecycle) away(grace time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		return 0
	}
	return max(grace-time.Duration(agora.Ticks()-l.stopped), time.Millisecond)
}

// leaves notes why the session leaves, and returns the reason: the first one counts.
func (l *lifecycle) leaves(why Cause) Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = cmp.Or(l.why, why)
	return l.why
}

// reason returns why the session left; zero where nobody has said so yet.
func (l *lifecycle) reason() Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// leavesHole reports whether the error of a part means that its stream must end.
// A numbered part is sent again wherever the session continues: once the
// socket is gone here, or the claim, the stream is the successor's, and what is
// refused from then on is no news of it. A part without a number that is
// dropped here is missed by nobody. It is none once the session is over here.
func (l *lifecycle) leavesHole(ctx context.Context, n uint64, err error) bool {
	if err == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deserted = l.deserted || ctx.Err() != nil || errors.Is(err, presence.ErrDeposed)
	return !l.over && !(l.deserted && n > 0)
}
