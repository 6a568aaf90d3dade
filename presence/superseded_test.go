package presence_test

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

func TestAClaimIsSupersededOnceAnotherHasBegunOrItsSessionIsOver(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		here, taken := claimIn(t, s, "here", "grace"), claimIn(t, s, "taken", "grace")
		moved, over := claimIn(t, s, "moved", "grace"), claimIn(t, s, "over", "grace")
		ending, replaced := claimIn(t, s, "ending", "grace"), claimIn(t, s, "replaced", "grace")
		_ = must(s.Sessions.Claim(t.Context(), withToken(claimant("taken", "e2"), "token-e1")))(t)
		_, _ = begun(t, s, withToken(claimant("moved", "e2"), "token-e1"))
		ok(t, s.Sessions.End(t.Context(), ending))
		for _, c := range []presence.Claim{over, replaced} {
			ended(t, s, c)
		}
		_ = must(s.Sessions.Claim(t.Context(), claimant("replaced", "e2")))(t)
		unknown := here
		unknown.Agent = "unknown"
		got := must(s.Sessions.Superseded(t.Context(), []presence.Claim{here, taken, moved, over, ending, replaced, unknown}))(t)
		if len(got) != 3 || got[0].Agent != "moved" || got[1].Agent != "over" || got[2].Agent != "replaced" {
			t.Errorf("superseded are %+v, want moved, over and replaced", got)
		}
	})
}

// An older copy of a session is in its grace, and the one who names no token takes one that is. But its agent may be
// connected where nobody has said so yet.
func TestNobodyTakesASessionWithoutItsTokenWhileTheServerMayLackItsHolder(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		var olds []presence.Held
		for _, id := range []agora.AgentID{"bare", "shown"} {
			older := claimIn(t, s, id, "grace")
			_, _ = begun(t, s, withToken(claimant(id, "e2"), "token-e1"))
			away := heldBy(older)
			away.Away = s.Grace()
			olds = append(olds, away)
		}
		srv.empty()
		_ = must(s.Sessions.Reassert(t.Context(), olds[0].Request.Holder, olds))(t)
		_, err := s.Sessions.Claim(t.Context(), claimant("bare", "e3"))
		is(t, err, presence.ErrIncomplete)
		if c := must(s.Sessions.Claim(t.Context(), withToken(claimant("shown", "e3"), "token-e1")))(t); !c.Resumed {
			t.Errorf("claimed with its token as %+v, want a session that goes on", c)
		}
		ok(t, s.SetWhole(t.Context()))
		if c := must(s.Sessions.Claim(t.Context(), claimant("bare", "e3")))(t); !c.Resumed {
			t.Errorf("claimed as %+v once the server is whole, want a session that goes on", c)
		}
	})
}

// The last holder of a session may be the last to write it again.
func TestATokenIsNotWrongWhileTheServerMayLackAYoungerOne(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		older := claimIn(t, s, "a", "grace")
		r := withToken(claimant("a", "e2"), "token-e1")
		younger, _ := begun(t, s, r)
		srv.empty()
		away := heldBy(older)
		away.Away = s.Grace()
		_ = must(s.Sessions.Reassert(t.Context(), claimant("a", "e1").Holder, []presence.Held{away}))(t)
		next := withToken(claimant("a", "e3"), "token-e2")
		_, err := s.Sessions.Claim(t.Context(), next)
		is(t, err, presence.ErrIncomplete)
		_ = must(s.Sessions.Reassert(t.Context(), r.Holder, []presence.Held{{Claim: younger, Request: r}}))(t)
		_ = must(s.Sessions.Reassert(t.Context(), claimant("a", "e1").Holder, []presence.Held{away}))(t) // which changes nothing any more
		next.Evict = younger.Epoch
		if c := must(s.Sessions.Claim(t.Context(), next))(t); !c.Resumed || c.Session != older.Session {
			t.Errorf("claimed as %+v, want session %s to go on", c, older.Session)
		}
	})
}

func TestWhatWasGivenUpAtAHolderIsKnownAfterALoss(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		left := heldBy(claimIn(t, s, "a", "grace"))
		left.Away, left.GaveUp = s.Grace(), true
		srv.empty()
		_ = must(s.Sessions.Reassert(t.Context(), left.Request.Holder, []presence.Held{left}))(t)
		c := must(s.Sessions.Claim(t.Context(), withToken(claimant("a", "e2"), "token-e1")))(t)
		for _, p := range c.Unsettled {
			_ = must(s.Sessions.Settle(t.Context(), c, p, true))(t)
		}
		if rec := must(s.Sessions.Begin(t.Context(), c))(t); rec.Dirty != left.Claim.Epoch {
			t.Errorf("holders up to epoch %d may have given up, want %d", rec.Dirty, left.Claim.Epoch)
		}
	})
}
