package edge

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// opening is a session that is about to begin: what its connection says of it, and what presence has of it. Nobody else
// has the session yet.
type opening struct {
	*Session
	hello Hello
	rec   presence.Record
	after uint64 // position at which delivery begins
	anew  bool   // the agent has come back without the session's token: it is a new process for what it sends

	misplaced map[string]bool // spaces of which the client names a position that is none of them
}

// newOpening returns a session that stands under a claim, for a connection.
func (n *Node) newOpening(a *Actor, h Hello, req presence.ClaimRequest, c presence.Claim, conn Conn, rec presence.Record) *opening {
	s := &Session{binding: binding{
		node: n, actor: a, claim: c, conn: conn, name: h.Conn, token: req.Token, cameBy: req.Resume, slot: h.Admission.slot, slow: h.Slow, wants: h.Receipts,
		since: n.cfg.Broker.Now().UnixNano(),
	}}
	s.out.binding, s.inbound.binding, s.inbound.out = &s.binding, &s.binding, &s.out
	most := h.MaxFrame
	if rec.Takes > 0 && most >= n.cfg.Limits.Frame { // what it says counts before what it has shown
		most = min(most, rec.Takes)
	}
	s.mailbox.bound = newFrameBound(most)
	s.profile.card = cardOf(req.Card)
	return &opening{Session: s, hello: h, rec: rec}
}

// start wires the session up; it stays silent until Begin.
func (s *opening) start() {
	s.keepalive.timer.Fire = s.tick
	s.keepalive.alive()
	s.keepalive.heartbeat.Store(s.hello.Heartbeat)
	s.incoming.restore(s.claim.Tenant, s.rec.Cancelled)
	s.out.resume(s.rec.Lanes, s.rec.Dirty)
	s.openSubscriptions(s)
}

// openInbox finds where delivery begins, and up to where frames may have been
// given to an earlier socket, and opens the inbox there.
func (s *opening) openInbox(ctx context.Context) error {
	h, rec, p := &s.hello, &s.rec, s.rec.Position
	s.cursor.proof.set(h.Proof)
	s.after, s.mailbox.markTo = p.Cursor, p.Written
	place, err := s.placeOf(ctx)
	if err != nil {
		return err
	}
	switch {
	case h.HasLast && place == broker.Own: // the client knows best
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
	from := broker.From{After: s.after, Tail: p.Tail, TailAt: p.TailAt, Quiet: rec.Quiet, Lost: place == broker.Foreign}
	if place == broker.Ahead { // and stays so, whatever comes now: the inbox tells a gap, and begins again
		from.After = agora.MaxSeq - 1
	}
	s.mailbox.inbox = s.node.cfg.Broker.Listen(s.address(), from, s.conn.Wake)
	return nil
}

// placeOf returns what the position is that the client names. Obeyed although nothing was delivered there, it would
// hide what is between: then it is another mailbox's, as that of a receipt is, or the log has not come to it.
func (s *opening) placeOf(ctx context.Context) (broker.Place, error) {
	h, p := &s.hello, s.rec.Position
	if !h.HasLast {
		return broker.Own, nil
	}
	place, err := s.placeIn(ctx, s.address(), h.LastSeq, p.Cursor)
	if err == nil && place == broker.Own && s.rec.Clean && h.LastSeq > max(p.Cursor, p.Written) {
		place = broker.Foreign // a message stands there, and no socket was given it
	}
	return place, err
}

// placeIn returns what a position is to an address, of whose messages all up to after have arrived, by the word of the
// log.
func (s *opening) placeIn(ctx context.Context, to agora.Address, seq, after uint64) (broker.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, s.node.cfg.Broker.Election())
	defer cancel()
	return s.node.cfg.Broker.Place(ctx, to, seq, after)
}

// lastInLog returns the position of the last frame of the mailbox, read from the log: while that does not answer, again
// and again for as long as an election takes.
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

// placeSpaces takes out of what the client names of its spaces the positions that are none of them, as they would hide
// what lies between: their subscriptions begin where they are known to have got to, behind a gap.
func (s *opening) placeSpaces(ctx context.Context) error {
	var asked sync.WaitGroup
	var mu sync.Mutex // guards the two below
	var failed error
	for name, seq := range s.hello.Spaces {
		cursor, is := s.rec.Spaces[name]
		if !is || seq <= cursor {
			continue
		}
		asked.Go(func() {
			place, err := s.placeIn(ctx, agora.ToSpace(s.claim.Tenant, name), seq, cursor)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			if place != broker.Own {
				put(&s.misplaced, name, true)
			}
		})
	}
	asked.Wait()
	return failed
}

// recallCard continues with the card of a resumed session: when it began, and what
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

// resumeToken is what an agent presents to go on with its session: the session's id, so that another one of
// the same agent is never taken for it, and the secret that is renewed with every claim.
func resumeToken(session, secret string) string { return session + "." + secret }

// parseResumeToken returns the parts of a resume token; one without a session is all secret.
func parseResumeToken(token string) (session, secret string) {
	session, secret, ok := strings.Cut(token, ".")
	if !ok {
		return "", token
	}
	return session, secret
}
