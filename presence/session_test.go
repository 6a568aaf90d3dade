package presence_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func TestACleanHandOverPassesThePositionsOn(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		old := claimIn(t, s, "a", "active")
		_ = must(s.Spaces.Join(t.Context(), old, "room", presence.Public, true))(t)
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		c := must(s.Sessions.Claim(t.Context(), r))(t)
		tail := time.Now().Truncate(time.Millisecond)
		p := presence.Position{Cursor: 1<<53 - 7, Written: 1<<53 - 5, Tail: 1<<53 - 3, TailAt: tail}
		ok(t, s.Sessions.HandedOver(t.Context(), old, p, map[string]uint64{"room": 1<<53 - 9, "left": 3}, false))
		_ = must(s.Sessions.Settle(t.Context(), c, c.Unsettled[0], true))(t)
		for range 2 { // the second time as if the first answer was lost
			rec := must(s.Sessions.Begin(t.Context(), c))(t)
			if !rec.Clean || rec.Position != p || rec.Dirty != 0 {
				t.Fatalf("record %+v, want %+v, clean", rec, p)
			}
			if want := map[string]uint64{"room": 1<<53 - 9}; !reflect.DeepEqual(rec.Spaces, want) {
				t.Fatalf("spaces %v, want %v", rec.Spaces, want)
			}
		}
		is(t, s.Sessions.HandedOver(t.Context(), old, presence.Position{}, nil, false), presence.ErrDeposed)
	})
}

func TestADirtyHandOverIsRemembered(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		old := claimIn(t, s, "a", "active")
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		c := must(s.Sessions.Claim(t.Context(), r))(t)
		ok(t, s.Sessions.HandedOver(t.Context(), old, presence.Position{Cursor: 4}, nil, true))
		_ = must(s.Sessions.Settle(t.Context(), c, c.Unsettled[0], true))(t)
		rec := must(s.Sessions.Begin(t.Context(), c))(t)
		if !rec.Clean || rec.Position.Cursor != 4 || rec.Dirty != c.Epoch-1 {
			t.Fatalf("record %+v, want clean positions and dirty %d", rec, c.Epoch-1)
		}
	})
}

func TestWrittenNeverGoesDown(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a", "active")
		for _, p := range []presence.Position{{Cursor: 5, Written: 900}, {Cursor: 8, Written: 90}} {
			ok(t, s.Positions.Write(t.Context(), []presence.Moved{{Claim: c, Position: p, Mark: time.UnixMilli(77)}}))
		}
		ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{Cursor: 10, Written: 100}, nil, false))
		ok(t, s.Positions.Write(t.Context(), []presence.Moved{{Claim: c, Position: presence.Position{Cursor: 3}}})) // too late
		_, rec := begun(t, s, claimant("a", "e2"))
		if got := rec.Position; got.Cursor != 10 || got.Written != 900 || !rec.Mark.Equal(time.UnixMilli(77)) {
			t.Fatalf("position %+v, mark %v; want cursor 10, written 900, mark 77", got, rec.Mark)
		}
	})
}

func TestAHolderThatNeverBeganGivesNoNewGraceAndNoPositions(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Grace: 100 * time.Millisecond})
		c1 := claimIn(t, s, "a", "active")
		ok(t, s.Sessions.Lose(t.Context(), c1, presence.Position{Cursor: 6, Written: 7}, nil, false))
		await.True(t, "grace is over, as it does not start anew with each claim", func() bool { // it comes back again and again, and is never served
			c, err := s.Sessions.Claim(t.Context(), claimant("a", "e2"))
			if err == nil {
				err = s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false)
			}
			if err != nil {
				is(t, err, presence.ErrEnding)
			}
			return err != nil
		})
		_, rec, err := s.Sessions.Ending(t.Context(), tenant, "a")
		ok(t, err)
		if rec.Position.Cursor != 6 || rec.Position.Written != 7 {
			t.Fatalf("position %+v, want 6 and 7", rec.Position)
		}
	})
}

func TestAClaimThatIsGivenBackLeavesItsAgentWhereItStood(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		for _, clean := range []bool{false, true} {
			id := agora.AgentID(fmt.Sprint("clean ", clean))
			stood := presence.Position{Cursor: 6, Written: 7}
			c := claimIn(t, s, id, "dead")
			ok(t, s.Positions.Write(t.Context(), []presence.Moved{{Claim: c, Position: stood}}))
			if clean {
				ok(t, s.Sessions.Lose(t.Context(), c, stood, nil, false))
				ok(t, s.Sessions.Flushed(t.Context(), c))
			}
			for range 2 { // each begins, and can't go on
				back := claimant(id, "e2")
				back.Evict = c.Epoch
				c, _ = begun(t, s, back)
				ok(t, s.Sessions.Return(t.Context(), c))
			}
			c, rec := begun(t, s, claimant(id, "e3"))
			if rec.Clean != clean || rec.Position.Cursor != 6 || rec.Position.Written != 7 || len(c.Unsettled) > 0 {
				t.Errorf("%s: %+v, unsettled %v; want cursor 6, written 7, and nobody unsettled", id, rec, c.Unsettled)
			}
		}
	})
}

func TestASessionEndsOnceAndItsAgentStaysKnownForAWhile(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s, brief := srv.store(presence.Config{}), srv.store(presence.Config{Known: 50 * time.Millisecond})
		found := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t)
		if found.State != presence.Unknown {
			t.Fatalf("before: %+v", found)
		}
		c := claimIn(t, s, "a", "active")
		found = must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t)
		if found.State != presence.Online || found.Holder != claimant("a", "e1").Holder {
			t.Fatalf("active: %+v", found)
		}
		ok(t, s.Lanes.Use(t.Context(), c, agora.ToAgent(tenant, "b"), nil))
		ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{Cursor: 6, Written: 7}, nil, false))
		if found = must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); found.State != presence.Away || found.Cursor != 6 {
			t.Fatalf("grace: %+v", found)
		}
		ok(t, s.Sessions.End(t.Context(), c))
		ok(t, s.Sessions.End(t.Context(), c)) // as if the answer was lost
		e, rec, err := s.Sessions.Ending(t.Context(), tenant, "a")
		ok(t, err)
		if e.Epoch <= c.Epoch || e.Session != c.Session || len(e.Unsettled) != 1 || len(rec.Lanes) != 1 || !rec.Clean {
			t.Fatalf("ending %+v, record %+v", e, rec)
		}
		is(t, brief.Sessions.Finished(t.Context(), c, false), presence.ErrDeposed)
		ok(t, brief.Sessions.Finished(t.Context(), e, false))
		ok(t, brief.Sessions.Finished(t.Context(), e, false))
		_, _, err = s.Sessions.Ending(t.Context(), tenant, "a")
		is(t, err, presence.ErrDeposed)
		ended(t, s, claimIn(t, s, "b", "active")) // this one is known for an hour
		if found = must(s.Addressees.Lookup(t.Context(), tenant, "b"))(t); found.State != presence.Away {
			t.Fatalf("just ended: %+v", found)
		}
		await.True(t, "it is unknown", func() bool {
			return must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t).State == presence.Unknown
		})
		// A new session: nothing of the old one but positions, and its holder is still to settle.
		n, rec := begun(t, s, claimant("a", "e2"))
		if n.Resumed || n.Session != "s-e2" || len(n.Unsettled) != 1 || len(rec.Lanes) != 0 || rec.Position.Written != 7 {
			t.Fatalf("new session %+v, record %+v", n, rec)
		}
	})
}

func TestRecordsAreForgotten(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Known: 100 * time.Millisecond, Remember: 200 * time.Millisecond})
		c := claimIn(t, s, "a", "active")
		ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{Cursor: 6}, nil, false))
		ended(t, s, c)
		raw := srv.client()
		defer raw.Close()
		await.True(t, "no key of the agent is left", func() bool {
			return len(raw.Keys(t.Context(), "agora:1:{a:*").Val()) == 0
		})
	})
}

func TestQuietOnlyWhenNothingCanHaveBeenSent(t *testing.T) {
	cases := []struct {
		name  string
		sleep func(t *testing.T, s, brief *presence.Store, c presence.Claim)
		want  bool
	}{
		{"nothing sent", func(*testing.T, *presence.Store, *presence.Store, presence.Claim) {}, true},
		{"looked up", func(t *testing.T, s, _ *presence.Store, c presence.Claim) {
			_ = must(s.Addressees.Lookup(t.Context(), tenant, c.Agent))(t)
		}, false},
		{"touched", func(t *testing.T, s, _ *presence.Store, c presence.Claim) {
			ok(t, s.Addressees.Touch(t.Context(), map[agora.Address]time.Duration{agora.ToSpace(tenant, "x"): 0, agora.ToAgent(tenant, c.Agent): 0}))
		}, false},
		{"touched for what it has read", func(t *testing.T, s, _ *presence.Store, c presence.Claim) {
			ok(t, s.Addressees.Touch(t.Context(), map[agora.Address]time.Duration{agora.ToAgent(tenant, c.Agent): time.Hour}))
		}, true},
		{"touched after its end", func(t *testing.T, s, _ *presence.Store, c presence.Claim) {
			ended(t, s, c)
			ok(t, s.Addressees.Touch(t.Context(), map[agora.Address]time.Duration{agora.ToAgent(tenant, c.Agent): 0}))
		}, false},
		{"nothing sent, ended", func(t *testing.T, s, _ *presence.Store, c presence.Claim) { ended(t, s, c) }, true},
		{"nothing sent, unknown by now", func(t *testing.T, s, brief *presence.Store, c presence.Claim) {
			ended(t, brief, c)
			await.True(t, "it is unknown", func() bool {
				return must(s.Addressees.Lookup(t.Context(), tenant, c.Agent))(t).State == presence.Unknown
			})
		}, false}, // the lookups before it was unknown
	}
	eachServer(t, func(t *testing.T, srv *server) {
		s, brief := srv.store(presence.Config{}), srv.store(presence.Config{Known: 50 * time.Millisecond})
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				claim := claimIn(t, s, agora.AgentID(c.name), "active")
				_ = must(s.Addressees.Lookup(t.Context(), tenant, claim.Agent))(t) // online: not noted
				at := time.Now()
				await.True(t, "some time passes", func() bool { return time.Since(at) > 20*time.Millisecond })
				ok(t, s.Sessions.Lose(t.Context(), claim, presence.Position{Cursor: 1, Tail: 1, TailAt: time.Now()}, nil, false))
				at = time.Now()
				await.True(t, "some time passes", func() bool { return time.Since(at) > 20*time.Millisecond })
				c.sleep(t, s, brief, claim)
				if _, rec := begun2(t, s, claimant(claim.Agent, "e1")); rec.Quiet != c.want {
					t.Errorf("quiet = %v, want %v", rec.Quiet, c.want)
				}
			})
		}
		t.Run("never positioned", func(t *testing.T) {
			if _, rec := begun(t, s, claimant("fresh", "e1")); rec.Quiet {
				t.Error("quiet though nothing is known")
			}
		})
		t.Run("did not hand over", func(t *testing.T) {
			claim := claimIn(t, s, "dirty", "active")
			ok(t, s.Sessions.Lose(t.Context(), claim, presence.Position{TailAt: time.Now()}, nil, false))
			if _, rec := begun(t, s, claimant("dirty", "e1")); rec.Quiet {
				t.Error("quiet though the holder did not hand over")
			}
		})
	})
}

// begun2 is begun for a holder that hands everything over.
func begun2(t *testing.T, s *presence.Store, r presence.ClaimRequest) (presence.Claim, presence.Record) {
	t.Helper()
	r.Conn = "ws-again"
	c := must(s.Sessions.Claim(t.Context(), r))(t)
	for _, p := range c.Unsettled {
		_ = must(s.Sessions.Settle(t.Context(), c, p, true))(t)
	}
	return c, must(s.Sessions.Begin(t.Context(), c))(t)
}

func TestLanesAndStreamsStandWithTheSession(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a b", "active")
		peer, room := agora.ToAgent(tenant, "größer / {x}:y"), agora.ToSpace(tenant, "task.x")
		until := time.UnixMilli(1_900_000_000_123)
		ok(t, s.Lanes.Use(t.Context(), c, peer, &presence.OpenStream{Stream: "s/1:ü", Kind: agora.Reply, Indexed: true, Deadline: until, Receipts: agora.Stored | agora.Acked}))
		ok(t, s.Lanes.Use(t.Context(), c, peer, &presence.OpenStream{Stream: "s 2", Kind: agora.Request}))
		ok(t, s.Lanes.Use(t.Context(), c, peer, &presence.OpenStream{Stream: "gone"}))
		ok(t, s.Lanes.Use(t.Context(), c, room, nil))
		ok(t, s.Lanes.CloseStreams(t.Context(), c, peer, []string{"gone", "never there"}))
		ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false))
		_, rec := begun(t, s, claimant("a b", "e2"))
		want := []presence.Lane{
			{To: peer, Open: []presence.OpenStream{
				{Stream: "s 2", Kind: agora.Request},
				{Stream: "s/1:ü", Kind: agora.Reply, Indexed: true, Deadline: until, Receipts: agora.Stored | agora.Acked},
			}},
			{To: room},
		}
		if !reflect.DeepEqual(rec.Lanes, want) {
			t.Fatalf("lanes\n%+v, want\n%+v", rec.Lanes, want)
		}
	})
}

// The next holder waits for the one before to hand over, and learns from presence which streams are open then. After
// that the name may be another stream's.
func TestWhoStillHasToHandOverTakesEndedStreamsOut(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		old, to := claimIn(t, s, "a", "active"), agora.ToAgent(tenant, "b")
		for _, name := range []string{"ended", "open"} {
			ok(t, s.Lanes.Use(t.Context(), old, to, &presence.OpenStream{Stream: name}))
		}
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		c := must(s.Sessions.Claim(t.Context(), r))(t)
		ok(t, s.Lanes.CloseStreams(t.Context(), old, to, []string{"ended"}))
		ok(t, s.Sessions.HandedOver(t.Context(), old, presence.Position{}, nil, false))
		is(t, s.Lanes.CloseStreams(t.Context(), old, to, []string{"open"}), presence.ErrDeposed)
		rec := must(s.Sessions.Begin(t.Context(), c))(t)
		if len(rec.Lanes) != 1 || len(rec.Lanes[0].Open) != 1 || rec.Lanes[0].Open[0].Stream != "open" {
			t.Errorf("lanes %+v, want the stream that is open", rec.Lanes)
		}
		is(t, s.Lanes.CloseStreams(t.Context(), old, to, []string{"open"}), presence.ErrDeposed)
	})
}

func TestTheNewestCancelledStreamsStayWithTheAgent(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a", "active")
		for n := range 258 {
			st := presence.Stream{Peer: "peer/x", Stream: "s" + string(rune(0x400+n)), Seq: 1 << 52}
			ok(t, s.Lanes.Cancel(t.Context(), c, st))
		}
		ok(t, s.Lanes.Uncancel(t.Context(), c, "peer/x", "s"+string(rune(0x400+100))))
		ended(t, s, c)
		_, rec := begun(t, s, claimant("a", "e2"))
		if len(rec.Cancelled) != 255 {
			t.Fatalf("%d streams, want 255", len(rec.Cancelled))
		}
		for _, n := range []int{0, 1, 100} {
			gone := presence.Stream{Peer: "peer/x", Stream: "s" + string(rune(0x400+n)), Seq: 1 << 52}
			if slices.Contains(rec.Cancelled, gone) {
				t.Errorf("stream %d is still there", n)
			}
		}
	})
}

func TestCardsComeBackAsTheyWere(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		r := claimant("a", "e1")
		r.Card.Metadata = json.RawMessage(`{ "b":1.0,  "a":"<&>" }`)
		renewed(t, s, r.Holder)
		c, rec := begun(t, s, r)
		if string(rec.Card.Metadata) != string(r.Card.Metadata) || time.Since(rec.Card.RegisteredAt).Abs() > time.Minute {
			t.Fatalf("card %+v", rec.Card)
		}
		card := agora.Agent{
			ID: "a", Name: "n", Endpoint: "e", Type: "t", Capabilities: []string{"x"},
			RegisteredAt: time.UnixMicro(1_700_000_000_123_456),
		}
		_ = must(s.Directory.SetCard(t.Context(), c, "alice", card))(t)
		card.Status = agora.Online
		_, _ = begun(t, s, claimant("A", "e1"))
		away, _ := begun(t, s, claimant("z", "e1"))
		ok(t, s.Sessions.Lose(t.Context(), away, presence.Position{}, nil, false))
		over, _ := begun(t, s, claimant("over", "e1"))
		ok(t, s.Sessions.End(t.Context(), over))
		got := must(s.Directory.Agents(t.Context(), tenant))(t)
		if len(got) != 3 || got[0].ID != "A" || got[2].ID != "z" || !reflect.DeepEqual(got[1], card) {
			t.Fatalf("agents %+v", got)
		}
		if other := must(s.Directory.Agents(t.Context(), "another"))(t); len(other) != 0 {
			t.Fatalf("another tenant sees %+v", other)
		}
	})
}

func TestAHolderThatHasFlushedIsNotWaitedFor(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		old := claimIn(t, s, "a", "active")
		is(t, s.Sessions.Flushed(t.Context(), old), presence.ErrDeposed) // not lost yet
		ok(t, s.Sessions.Lose(t.Context(), old, presence.Position{Cursor: 4}, nil, false))
		ok(t, s.Sessions.Flushed(t.Context(), old))
		c := must(s.Sessions.Claim(t.Context(), claimant("a", "e2")))(t)
		if !c.Resumed || len(c.Unsettled) != 0 {
			t.Fatalf("claim %+v, want a resumed one with nobody to wait for", c)
		}
		if rec := must(s.Sessions.Begin(t.Context(), c))(t); rec.Dirty != 0 || !rec.Clean {
			t.Fatalf("record %+v, want clean", rec)
		}
		is(t, s.Sessions.Flushed(t.Context(), old), presence.ErrDeposed)
	})
}
