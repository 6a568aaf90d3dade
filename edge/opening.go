package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// opening is a session that is about to begin: what its connection says of it, and what presence has of it. Nobody else has the session yet.
type opening struct {
	*Session
	hello Hello
	rec   presence.Record
	after uint64 // position at which delivery begins
}

// newOpening returns a session that stands under a claim, for a connection.
func (n *Node) newOpening(a *Actor, h Hello, req presence.ClaimRequest, c presence.Claim, conn Conn, rec presence.Record) *opening {
	s := &Session{binding: binding{
		node: n, actor: a, claim: c, conn: conn, name: h.Conn, token: req.Token, slot: h.Admission.slot, slow: h.Slow, wants: h.Receipts,
		since: n.cfg.Broker.Now().UnixNano(),
	}}
	s.out.binding = &s.binding
	s.profile.card = cardOf(req.Card)
	return &opening{Session: s, hello: h, rec: rec}
}

// start wires the session up; it stays silent until Begin.
func (s *opening) start() {
	s.keepalive.timer.Fire = keeper{s.Session}.tick
	s.keepalive.alive()
	s.profile.heartbeat.Store(s.hello.Heartbeat)
	s.incoming.restore(s.claim.Tenant, s.rec.Cancelled)
	s.out.resume(s.rec.Lanes, s.rec.Dirty)
	member{s.Session}.openSubscriptions(s.hello, s.rec)
}

// openInbox finds where delivery begins, and up to where frames may have been
// given to an earlier socket, and opens the inbox there.
func (s *opening) openInbox(ctx context.Context) error {
	h, rec, p := &s.hello, &s.rec, s.rec.Position
	s.cursor.proof.set(h.Proof)
	s.after, s.mailbox.markTo = p.Cursor, p.Written
	beyond := s.aheadOfLog(ctx, p)
	switch {
	case h.HasLast && !beyond: // the client knows best
		s.after, s.mailbox.markTo = h.LastSeq, 0
	case !rec.Clean:
		tail, err := s.lastInLog(ctx)
		if err != nil {
			return err
		}
		s.mailbox.markTo = tail
	}
	if !guard.Cursors {
		var err error
		if s.after, err = s.lastInLog(ctx); err != nil {
			return err
		}
	}
	s.cursor.begin(s.after, max(s.after, p.Written, s.mailbox.markTo)) // which it may acknowledge
	if p.TailAt.IsZero() && s.claim.Resumed {
		p.TailAt = rec.Card.RegisteredAt // nothing was sent to it before it was known
	}
	from := s.after
	if beyond { // and stays so, whatever comes now: the inbox tells a gap, and begins anew
		from = agora.MaxSeq - 1
	}
	s.mailbox.inbox = s.node.cfg.Broker.Listen(s.address(), broker.From{
		After: from, Tail: p.Tail, TailAt: p.TailAt, Quiet: rec.Quiet,
	}, s.conn.Wake)
	return nil
}

// aheadOfLog reports whether the client has named a position that the log has not come to: what comes next would pass for what it has dealt with.
func (s *opening) aheadOfLog(ctx context.Context, p presence.Position) bool {
	h := &s.hello
	if !h.HasLast || h.LastSeq <= max(p.Cursor, p.Written, p.Tail) {
		return false
	}
	reached, err := s.node.cfg.Broker.Reached(ctx, s.address(), h.LastSeq)
	return err == nil && !reached // else it is believed: nobody can tell now
}

// lastInLog returns the position of the last frame of the mailbox, read from the log: while that does not answer, again and again for
// as long as an election takes.
func (s *opening) lastInLog(ctx context.Context) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.node.cfg.Broker.Election())
	defer cancel()
	for {
		seq, err = s.node.cfg.Broker.Last(ctx, s.address())
		if err == nil || !pause.For(ctx, 100*time.Millisecond) {
			return seq, err
		}
	}
}

// recallCard goes on with the card of a resumed session: when it began, and what
// it said of itself unless it says more now.
func (s *opening) recallCard(ctx context.Context) error {
	if !s.claim.Resumed {
		return nil
	}
	now := s.profile.card.of(s.claim.Agent)
	if now.Bare() {
		s.profile.card = cardOf(s.rec.Card)
		return nil
	}
	now.RegisteredAt = s.rec.Card.RegisteredAt
	s.profile.card = cardOf(now)
	return s.setCard(ctx, now)
}
