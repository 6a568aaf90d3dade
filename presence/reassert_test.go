package presence_test

import (
	"context"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// heldBy is what e1 knows of an agent that it serves.
func heldBy(c presence.Claim) presence.Held {
	return presence.Held{
		Claim: c, Request: claimant(c.Agent, "e1"),
		Position: presence.Position{Cursor: 5, Written: 6, Tail: 6, TailAt: time.Now()},
		Spaces:   map[string]uint64{"room": 512, "agent.status": 0},
		Lanes: []presence.Lane{{
			To: agora.ToAgent(tenant, "b"), Open: []presence.OpenStream{{Stream: "s", Kind: agora.Reply, Indexed: true}},
		}},
	}
}

func TestAnEdgeWritesWhatTheServerLostAgain(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{SpaceType: func(space string) string {
			if strings.HasPrefix(space, "agent.") {
				return presence.System
			}
			return presence.Public
		}})
		c := claimIn(t, s, "a", "active")
		h := claimant("a", "e1").Holder
		srv.empty()
		await.True(t, "the lease is back", func() bool {
			held, err := s.Leases.Renew(t.Context(), h, "")
			return err == nil && !held
		})
		ok(t, s.SetWhole(t.Context()))
		for range 2 { // the second time nothing was lost
			if deposed := must(s.Sessions.Reassert(t.Context(), h, []presence.Held{heldBy(c)}))(t).Deposed; len(deposed) != 0 {
				t.Fatalf("deposed %+v", deposed)
			}
		}
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Online || f.Holder != h || f.Cursor != 5 {
			t.Fatalf("found %+v", f)
		}
		if got := must(s.Directory.Agents(t.Context(), tenant))(t); len(got) != 1 || got[0].Name != "the a" {
			t.Fatalf("agents %+v", got)
		}
		want := []presence.Space{{"agent.status", "system", 1}, {"room", "public", 1}}
		if got := must(s.Spaces.List(t.Context(), tenant))(t); !reflect.DeepEqual(got, want) {
			t.Fatalf("spaces %+v, want %+v", got, want)
		}
		if m := must(s.Spaces.Join(t.Context(), c, "room", presence.Public, true))(t); m.Changed || len(m.Pending) != 0 {
			t.Fatalf("membership %+v; want no change to tell of", m)
		}
		rec := must(s.Sessions.Begin(t.Context(), c))(t)
		x := heldBy(c)
		if !reflect.DeepEqual(rec.Lanes, x.Lanes) || !reflect.DeepEqual(rec.Spaces, x.Spaces) || rec.Position.Written != 6 || rec.Card.RegisteredAt.IsZero() {
			t.Fatalf("record %+v", rec)
		}
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		if n := must(s.Sessions.Claim(t.Context(), r))(t); !n.Resumed || n.Session != c.Session || n.Epoch <= c.Epoch {
			t.Fatalf("taken over as %+v", n)
		}
	})
}

// An edge takes an agent over, and the answer with the new token is lost, as is then what the server knew.
func TestAnAgentThatNeverGotItsNewTokenReturnsAfterALossToo(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		r := withToken(claimant("a", "e2"), "token-e1")
		r.ResumeSession = claimIn(t, s, "a", "grace").Session
		c := must(s.Sessions.Claim(t.Context(), r))(t)
		srv.empty()
		if deposed := must(s.Sessions.Reassert(t.Context(), r.Holder, []presence.Held{{Claim: c, Request: r}}))(t).Deposed; len(deposed) != 0 {
			t.Fatalf("deposed %+v", deposed)
		}
		next := withToken(claimant("a", "e3"), "token-e1")
		next.ResumeSession, next.Evict = c.Session, c.Epoch
		if again := must(s.Sessions.Claim(t.Context(), next))(t); !again.Resumed || again.Session != c.Session {
			t.Errorf("claimed as %+v, want session %s to go on", again, c.Session)
		}
	})
}

func TestOnlyWhoStillHoldsASessionKeepsIt(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		taken, over := claimIn(t, s, "taken", "active"), claimIn(t, s, "over", "active")
		lapsed, kept := claimIn(t, s, "lapsed", "active"), claimIn(t, s, "kept", "active")
		r := claimant("taken", "e2")
		r.Resume = "token-e1"
		_, _ = begun(t, s, r)
		ok(t, s.Sessions.End(t.Context(), over))
		ok(t, s.Sessions.Lose(t.Context(), lapsed, presence.Position{}, nil, false)) // as a sweeper does
		deposed := must(s.Sessions.Reassert(t.Context(), claimant("x", "e1").Holder,
			[]presence.Held{heldBy(taken), heldBy(over), heldBy(lapsed), heldBy(kept)}))(t).Deposed
		if len(deposed) != 2 || deposed[0].Agent != "taken" || deposed[1].Agent != "over" {
			t.Fatalf("deposed %+v", deposed)
		}
		for id, edge := range map[agora.AgentID]string{"lapsed": "e1", "kept": "e1", "taken": "e2"} {
			if f := must(s.Addressees.Lookup(t.Context(), tenant, id))(t); f.State != presence.Online || f.Holder.Edge != edge {
				t.Errorf("%s: found %+v, want it online at %s", id, f, edge)
			}
		}
	})
}

func TestAClaimWhoseUnsettledRemainKeepsTheLastPositions(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		old := claimIn(t, s, "a", "active")
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		c := must(s.Sessions.Claim(t.Context(), r))(t)
		x := presence.Held{Claim: c, Request: r, Position: presence.Position{Cursor: 99}}
		_ = must(s.Sessions.Reassert(t.Context(), r.Holder, []presence.Held{x}))(t)
		ok(t, s.Sessions.HandedOver(t.Context(), old, presence.Position{Cursor: 4}, nil, false))
		_ = must(s.Sessions.Settle(t.Context(), c, c.Unsettled[0], true))(t)
		if rec := must(s.Sessions.Begin(t.Context(), c))(t); rec.Position.Cursor != 4 {
			t.Fatalf("cursor %d, want 4", rec.Position.Cursor)
		}
	})
}

// between calls f once, around the first command that has a key with this text.
type between struct {
	text   string
	before bool
	f      func()
	once   sync.Once
}

func (b *between) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		hit := strings.Contains(cmd.String(), b.text)
		if hit && b.before {
			b.once.Do(b.f)
		}
		err := next(ctx, cmd)
		if hit && !b.before {
			b.once.Do(b.f)
		}
		return err
	}
}

func (b *between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAnEdgeThatComesBackWhileItIsSweptKeepsItsClaims(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		cfg := presence.Config{Lease: 200 * time.Millisecond}
		s, back := srv.store(cfg), srv.store(presence.Config{})
		c := claimIn(t, s, "a", "active")
		h := claimant("a", "e1").Holder
		await.True(t, "the lease lapses", func() bool { return !must(s.Leases.Alive(t.Context(), h))(t) })
		came, kept := false, false
		cfg.Client = srv.client()
		cfg.Client.(redis.UniversalClient).AddHook(&between{text: "}:lease", f: func() {
			renewed(t, back, h)
			deposed := must(back.Sessions.Reassert(t.Context(), h, []presence.Held{heldBy(c)}))(t).Deposed
			came, kept = true, len(deposed) == 0
		}})
		sweeper := presence.New(cfg)
		defer sweeper.Close()
		await.True(t, "the edge is looked at", func() bool { // an embedded server's lease lapses before it is due, by a tick of its clock
			_ = must(sweeper.Sweep(t.Context(), presence.Holder{Edge: "s", Incarnation: "i"}, 10))(t)
			return came
		})
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); !kept || f.State != presence.Online {
			t.Fatalf("kept %v, found %+v; want it online", kept, f)
		}
	})
}

func TestAJoinThatComesTooLateLeavesNoGhost(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a", "active")
		cfg := presence.Config{Client: srv.client()}
		cfg.Client.(redis.UniversalClient).AddHook(&between{text: "{s:", before: true, f: func() { ended(t, s, c) }})
		late := presence.New(cfg)
		defer late.Close()
		_, err := late.Spaces.Join(t.Context(), c, "room", presence.Public, true)
		is(t, err, presence.ErrDeposed)
		if must(s.Spaces.IsMember(t.Context(), tenant, "room", "a"))(t) {
			t.Fatal("a session that is over is a member")
		}
	})
}

func TestAJoinGoesWithTheSessionToItsNextHolder(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a", "active")
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		var rec presence.Record
		cfg := presence.Config{Client: srv.client()}
		cfg.Client.(redis.UniversalClient).AddHook(&between{text: "{s:", before: true, f: func() { _, rec = begun(t, s, r) }})
		old := presence.New(cfg)
		defer old.Close()
		_ = must(old.Spaces.Join(t.Context(), c, "room", presence.Public, true))(t)
		if _, there := rec.Spaces["room"]; !there || !must(s.Spaces.IsMember(t.Context(), tenant, "room", "a"))(t) {
			t.Fatalf("the new holder knows of %v, and the space of no member", rec.Spaces)
		}
	})
}

func TestASessionInItsGraceIsWrittenAgainOnlyWhereItIsLost(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(short())
		c := claimIn(t, s, "a", "active")
		ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false))
		away := heldBy(c)
		away.Away = 300 * time.Millisecond
		srv.empty()
		await.True(t, "the server is back", func() bool { return s.SetWhole(t.Context()) == nil })
		h := claimant("a", "e1").Holder
		if deposed := must(s.Sessions.Reassert(t.Context(), h, []presence.Held{away}))(t).Deposed; len(deposed) != 0 {
			t.Fatalf("deposed %+v", deposed)
		}
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Away {
			t.Fatalf("found %+v, want it away", f)
		}
		// It ends like any other, and what it had open is known to the one who ends it.
		sweepUntil(t, s, presence.Holder{Edge: "s", Incarnation: "i"}, 64, func(ending []presence.Claim) bool { return len(ending) == 1 })
		e, rec, err := s.Sessions.Ending(t.Context(), tenant, "a")
		ok(t, err)
		if !reflect.DeepEqual(rec.Lanes, away.Lanes) || rec.Dirty != 0 {
			t.Fatalf("record %+v", rec)
		}
		ok(t, s.Sessions.Finished(t.Context(), e, false))
		// One that went on elsewhere stays as it is.
		n, _ := begun(t, s, claimant("a", "e2"))
		_ = must(s.Sessions.Reassert(t.Context(), h, []presence.Held{away}))(t)
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Online || f.Holder.Edge != "e2" {
			t.Fatalf("found %+v, want it online at e2", f)
		}
		again := presence.Held{Claim: n, Request: claimant("a", "e2"), Away: time.Second}
		_ = must(s.Sessions.Reassert(t.Context(), claimant("a", "e2").Holder, []presence.Held{again}))(t)
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Online {
			t.Fatalf("found %+v: who lost its socket tells so by itself", f)
		}
	})
}

func TestMissingClaimsAreFound(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		raw := srv.client()
		defer raw.Close()
		kept, taken := claimIn(t, s, "kept", "active"), claimIn(t, s, "taken", "active")
		lapsed, lost := claimIn(t, s, "lapsed", "active"), claimIn(t, s, "lost", "active")
		r := claimant("taken", "e2")
		r.Resume = "token-e1"
		_, _ = begun(t, s, r)
		ok(t, s.Sessions.Lose(t.Context(), lapsed, presence.Position{}, nil, false))
		ok(t, raw.Del(t.Context(), "agora:1:{a:default.lost}:rec").Err())
		missing := must(s.Sessions.Missing(t.Context(), claimant("x", "e1").Holder, slices.Values([]presence.Claim{kept, taken, lapsed, lost})))(t)
		var ids []agora.AgentID
		for _, c := range missing {
			ids = append(ids, c.Agent)
		}
		if want := []agora.AgentID{"taken", "lapsed", "lost"}; !reflect.DeepEqual(ids, want) {
			t.Fatalf("missing %v, want %v", ids, want)
		}
	})
}

func TestTheClaimsOfManyAreLookedAfter(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		raw := srv.client()
		defer raw.Close()
		claims, h := manyClaims(t, s, 300) // more than are asked for at a time
		ask := func(about string, want ...presence.Claim) {
			t.Helper()
			missing := must(s.Sessions.Missing(t.Context(), h, slices.Values(claims)))(t)
			if !slices.EqualFunc(missing, want, func(a, b presence.Claim) bool { return a.Agent == b.Agent && a.Epoch == b.Epoch }) {
				t.Fatalf("%s: %d missing, want %d: %v", about, len(missing), len(want), missing)
			}
		}
		ask("all are there")
		ask("all are still there")
		ok(t, raw.HSet(t.Context(), "agora:1:{a:default.agent-3}:rec", "inc", "another").Err())
		ok(t, raw.HSet(t.Context(), "agora:1:{a:default.agent-260}:rec", "epoch", claims[260].Epoch+1).Err())
		ok(t, raw.HSet(t.Context(), "agora:1:{a:default.agent-298}:rec", "state", "2").Err())
		ok(t, raw.HDel(t.Context(), "agora:1:{a:default.agent-299}:rec", "epoch").Err())
		ask("some are not", claims[3], claims[260], claims[298], claims[299])
		srv.empty()
		ask("the server has lost all", claims...)
	})
}

func TestAClaimCountsAsThereOnlyWhereThatWasAnswered(t *testing.T) {
	for _, c := range []struct {
		parts string
		want  bool
	}{
		{"ab|cd|e", true}, {"abcde", true}, {"", false}, {"ab|c", false}, {"abcdef", false}, {"abcde|f", false}, {"abx|abcde", false}, {"x|abcde", false},
	} {
		if got := presence.Answered("abcde", strings.Split(c.parts, "|")...); got != c.want {
			t.Errorf("%s taken for abcde: %v", c.parts, got)
		}
	}
}

func TestClaimsAreLookedAfterAgainWhereAConnectionBreaks(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		client := srv.client()
		broken := &breaking{}
		client.(redis.UniversalClient).AddHook(broken)
		s := presence.New(presence.Config{Client: client})
		defer s.Close()
		ok(t, s.SetWhole(t.Context()))
		kept, lost := claimIn(t, s, "kept", "active"), claimIn(t, s, "lost", "active")
		ok(t, client.Del(t.Context(), "agora:1:{a:default.lost}:rec").Err())
		broken.next.Store(true)
		missing := must(s.Sessions.Missing(t.Context(), claimant("x", "e1").Holder, slices.Values([]presence.Claim{kept, lost})))(t)
		if broken.next.Load() || len(missing) != 1 || missing[0].Agent != "lost" {
			t.Fatalf("missing %v, want the one that is lost", missing)
		}
	})
}

// breaking has the next pipeline fail.
type breaking struct{ next atomic.Bool }

func (*breaking) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*breaking) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (b *breaking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if b.next.Swap(false) {
			return io.EOF
		}
		return next(ctx, cmds)
	}
}

func TestWhoHandsOverUnaskedIsSettled(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		old := claimIn(t, s, "a", "active")
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		c := must(s.Sessions.Claim(t.Context(), r))(t)
		if !must(s.Sessions.Unsettled(t.Context(), c, c.Unsettled[0]))(t) {
			t.Fatal("settled before it handed over")
		}
		ok(t, s.Sessions.HandedOver(t.Context(), old, presence.Position{Cursor: 4}, nil, true))
		if must(s.Sessions.Unsettled(t.Context(), c, c.Unsettled[0]))(t) {
			t.Fatal("unsettled after it handed over")
		}
		_ = must(s.Sessions.Settle(t.Context(), c, c.Unsettled[0], true))(t) // changes nothing of how it went
		if rec := must(s.Sessions.Begin(t.Context(), c))(t); rec.Dirty != c.Epoch-1 || rec.Position.Cursor != 4 {
			t.Fatalf("record %+v; want it dirty, and at position 4", rec)
		}
		is(t, s.Sessions.HandedOver(t.Context(), old, presence.Position{}, nil, false), presence.ErrDeposed)
	})
}

// Sessions are written again that leave a space meanwhile: who is leaving it, or has left while it is away, does not
// come back.
func TestWhoLeavesWhileItIsWrittenAgainIsNoMember(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		for _, c := range []struct {
			id   agora.AgentID
			away time.Duration
			told bool
		}{{"here, leaving", 0, false}, {"away, leaving", time.Hour, false}, {"away, left", time.Hour, true}} {
			t.Run(string(c.id), func(t *testing.T) {
				claim := claimIn(t, s, c.id, "active")
				_ = must(s.Spaces.Join(t.Context(), claim, "room", presence.Public, true))(t)
				held := heldBy(claim)
				held.Spaces, held.Away = map[string]uint64{"room": 0}, c.away
				_ = must(s.Spaces.Leave(t.Context(), claim, "room"))(t)
				if c.told {
					ok(t, s.Spaces.Left(t.Context(), claim, "room"))
				}
				_ = must(s.Sessions.Reassert(t.Context(), claimant(c.id, "e1").Holder, []presence.Held{held}))(t)
				if must(s.Spaces.IsMember(t.Context(), tenant, "room", c.id))(t) {
					t.Error("it is a member again")
				}
			})
		}
	})
}

// A session is written again that has left a space meanwhile, and others were told: that it is in there again they are
// told, too.
func TestAMembershipThatIsWrittenAgainOverALeaveIsTold(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		claim := claimIn(t, s, "a", "active")
		_ = must(s.Spaces.Join(t.Context(), claim, "room", presence.Public, true))(t)
		held := heldBy(claim)
		m := must(s.Spaces.Leave(t.Context(), claim, "room"))(t)
		ok(t, s.Spaces.Announced(t.Context(), tenant, "room", m.Pending[len(m.Pending)-1].Version))
		ok(t, s.Spaces.Left(t.Context(), claim, "room"))
		_ = must(s.Sessions.Reassert(t.Context(), claimant("a", "e1").Holder, []presence.Held{held}))(t)
		var told []string
		for _, c := range must(s.Spaces.Leave(t.Context(), claim, "room"))(t).Pending {
			told = append(told, "joined "+string(c.Joined)+", left "+string(c.Left))
		}
		if want := []string{"joined a, left ", "joined , left a"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
