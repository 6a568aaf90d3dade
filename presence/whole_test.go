package presence_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/presence"
)

func TestWhatAServerThatIsNotWholeLacksIsUnavailable(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a", "active")
		_ = must(s.Spaces.Join(t.Context(), c, "room", presence.Public, true))(t)
		srv.empty()
		await.True(t, "the server is back", func() bool { return s.Ping(t.Context()) == nil })
		calls := map[string]func() error{
			"Lookup":        func() error { _, err := s.Addressees.Lookup(t.Context(), tenant, "a"); return err },
			"Claim":         func() error { _, err := s.Sessions.Claim(t.Context(), claimant("new", "e1")); return err },
			"Agents":        func() error { _, err := s.Directory.Agents(t.Context(), tenant); return err },
			"Spaces.Exists": func() error { _, err := s.Spaces.Exists(t.Context(), tenant, "room"); return err },
			"Members":       func() error { _, err := s.Spaces.Members(t.Context(), tenant, "room"); return err },
			"IsMember":      func() error { _, err := s.Spaces.IsMember(t.Context(), tenant, "room", "a"); return err },
			"Spaces":        func() error { _, err := s.Spaces.List(t.Context(), tenant); return err },
			"Join":          func() error { _, err := s.Spaces.Join(t.Context(), c, "room", presence.Public, true); return err },
			"Leave":         func() error { _, err := s.Spaces.Leave(t.Context(), c, "room"); return err },
			"adopting": func() error {
				r := claimant("a", "e2")
				r.Adopt = c.Epoch
				_, err := s.Sessions.Claim(t.Context(), r)
				return err
			},
		}
		for name, f := range calls {
			if err := f(); !unavailable(err) || !errors.Is(err, presence.ErrIncomplete) {
				t.Errorf("%s = %v, want UNAVAILABLE", name, err)
			}
		}
		x := heldBy(c)
		_ = must(s.Sessions.Reassert(t.Context(), claimant("a", "e1").Holder, []presence.Held{x}))(t)
		// What is there is there.
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Online {
			t.Errorf("found %+v", f)
		}
		if !must(s.Spaces.IsMember(t.Context(), tenant, "room", "a"))(t) || !must(s.Spaces.Exists(t.Context(), tenant, "room"))(t) {
			t.Error("its membership is not there")
		}
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		if n := must(s.Sessions.Claim(t.Context(), r))(t); !n.Resumed {
			t.Errorf("claimed as %+v", n)
		}
		ok(t, s.SetWhole(t.Context()))
		for name, f := range calls {
			if err := f(); unavailable(err) {
				t.Errorf("%s = %v of a server that is whole", name, err)
			}
		}
	})
}

func TestNothingIsSweptWhileTheServerIsNotWhole(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(short())
		raw := srv.client()
		defer raw.Close()
		c := claimIn(t, s, "a", "active")
		ok(t, s.Sessions.End(t.Context(), c))
		ok(t, raw.Del(t.Context(), presence.WholeKey).Err())
		h := presence.Holder{Edge: "s", Incarnation: "i"}
		until := time.Now().Add(150 * time.Millisecond)
		sweepUntil(t, s, h, 64, func(ending []presence.Claim) bool {
			if len(ending) != 0 {
				t.Errorf("swept %+v", ending)
			}
			return time.Now().After(until)
		})
		ok(t, s.SetWhole(t.Context()))
		sweepUntil(t, s, h, 64, func(ending []presence.Claim) bool {
			return len(ending) == 1 && ending[0].Agent == agora.AgentID("a")
		})
	})
}

func TestTheLossOfANodeOfARedisClusterShows(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s, raw := srv.store(presence.Config{}), srv.client()
		defer raw.Close()
		if _, is := raw.(*redis.ClusterClient); !is {
			return // one server: TestWhatAServerThatIsNotWholeLacksIsUnavailable
		}
		marked := map[int64]bool{}
		for _, m := range presence.Marks(s) {
			slot := must(raw.ClusterKeySlot(t.Context(), m).Result())(t)
			marked[slot/256] = true
			ok(t, raw.Del(t.Context(), m).Err())
			if whole := must(s.Whole(t.Context()))(t); whole {
				t.Fatalf("whole without %s", m)
			}
			ok(t, s.SetWhole(t.Context()))
		}
		if len(marked) != 64 {
			t.Errorf("marks in %d of 64 parts of the slots", len(marked))
		}
		ok(t, raw.Del(t.Context(), presence.Marks(s)[40]).Err())
		for name, f := range map[string]func() error{
			"Lookup":  func() error { _, err := s.Addressees.Lookup(t.Context(), tenant, "nobody"); return err },
			"Claim":   func() error { _, err := s.Sessions.Claim(t.Context(), claimant("new", "e1")); return err },
			"Members": func() error { _, err := s.Spaces.Members(t.Context(), tenant, "room"); return err },
		} {
			if err := f(); !errors.Is(err, presence.ErrIncomplete) {
				t.Errorf("%s = %v, want UNAVAILABLE", name, err)
			}
		}
	})
}

func TestASessionThatTheServerLacksIsLostOnceItIsWhole(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a", "active")
		if _, lost, err := s.Sessions.Lost(t.Context(), tenant, "a", c.Session); lost || err != nil {
			t.Errorf("a session that runs is lost: %v, %v", lost, err)
		}
		epoch, lost, err := s.Sessions.Lost(t.Context(), tenant, "a", "another")
		if !lost || err != nil || epoch <= c.Epoch {
			t.Errorf("another session is lost: %v, %v, under %d after %d", lost, err, epoch, c.Epoch)
		}
		srv.empty()
		await.True(t, "the server is back", func() bool { return s.Ping(t.Context()) == nil })
		if _, _, err := s.Sessions.Lost(t.Context(), tenant, "a", c.Session); !errors.Is(err, presence.ErrIncomplete) {
			t.Errorf("while the server is not whole: %v", err)
		}
		ok(t, s.SetWhole(t.Context()))
		epoch, lost, err = s.Sessions.Lost(t.Context(), tenant, "a", c.Session)
		if !lost || err != nil || epoch <= c.Epoch {
			t.Errorf("lost: %v, %v, under %d after %d", lost, err, epoch, c.Epoch)
		}
		// Its holder was away and tells of it after all: what claims it next is younger than what has ended its lanes.
		_ = must(s.Sessions.Reassert(t.Context(), claimant("a", "e1").Holder, []presence.Held{heldBy(c)}))(t)
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		if n := must(s.Sessions.Claim(t.Context(), r))(t); !n.Resumed || n.Epoch <= epoch {
			t.Errorf("claimed as %+v, after %d", n, epoch)
		}
	})
}

func TestThatTheLogIsToBeLookedThroughIsKnownUntilItHasBeen(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		now := time.UnixMilli(1_700_000_000_000)
		s := srv.store(presence.Config{Now: func() time.Time { return now }})
		standing := func(want time.Time) {
			t.Helper()
			whole, unsearched, err := s.Standing(t.Context())
			if !whole || !unsearched.Equal(want) || err != nil {
				t.Errorf("whole: %v, to be looked through since %v, %v; want %v", whole, unsearched, err, want)
			}
		}
		standing(now)
		ok(t, s.Searched(t.Context(), now))
		standing(time.Time{})
		srv.empty()
		await.True(t, "the server is back", func() bool { return s.Ping(t.Context()) == nil })
		ok(t, s.Searched(t.Context(), now)) // it makes nothing whole
		if whole := must(s.Whole(t.Context()))(t); whole {
			t.Error("whole though empty")
		}
		before := now
		now = now.Add(time.Second)
		ok(t, s.SetWhole(t.Context()))
		ok(t, s.Searched(t.Context(), before)) // for what was lost before
		standing(now)
	})
}

// A Redis that starts may leave out of its file what scripts with several writes have written (redis #14541: where its
// default user may do nothing). It is not whole then, whether or not the log was looked through.
func TestTheMarkDiesWithWhatScriptsWrote(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]func(*testing.T, *presence.Store){
		"made whole": func(*testing.T, *presence.Store) {},
		"searched": func(t *testing.T, s *presence.Store) {
			_, since, err := s.Standing(t.Context())
			ok(t, err)
			ok(t, s.Searched(t.Context(), since))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := []string{"--dir", t.TempDir(), "--appendonly", "yes", "--user", "default", "off", "--user", "edge", "on", ">s3cret", "~*", "+@all"}
			begin := func() (*presence.Store, redis.UniversalClient) {
				c := must(presence.Dial("redis://edge:s3cret@" + servers.RedisGuarded(t, nil, flags...)))(t)
				t.Cleanup(func() { c.Close() })
				return presence.New(presence.Config{Client: c, Lease: time.Hour, Grace: time.Hour}), c.(redis.UniversalClient)
			}
			s, raw := begin()
			ok(t, s.SetWhole(t.Context()))
			claimIn(t, s, "a", "active")
			mark(t, s)
			_ = raw.ShutdownSave(t.Context()).Err() // it hangs up
			s, raw = begin()
			there := must(raw.Exists(t.Context(), "agora:1:{a:default.a}:rec").Result())(t) == 1
			if whole := must(s.Whole(t.Context()))(t); whole && !there {
				t.Error("a server that has lost a session says that it is whole")
			}
			t.Logf("the session is there: %t", there)
		})
	}
}

func TestTheServerIsNotWholeWhereItHasLostWhatItWasToldMeanwhile(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		_ = must(s.Doubt(t.Context()))(t)
		first := must(s.Gather(t.Context()))(t)
		if again := must(s.Gather(t.Context()))(t); again.ID != first.ID || again.Age < first.Age {
			t.Errorf("gathered is %+v, then %+v", first, again)
		}
		srv.empty()
		await.True(t, "the server is back", func() bool { return s.Ping(t.Context()) == nil })
		second := must(s.Gather(t.Context()))(t)
		ok(t, s.Gathered(t.Context(), first))
		if must(s.Whole(t.Context()))(t) {
			t.Error("it is whole by what it was told before it lost everything")
		}
		ok(t, s.Gathered(t.Context(), second))
		if !must(s.Whole(t.Context()))(t) {
			t.Error("it is not whole though all was told")
		}
		if must(s.Doubt(t.Context()))(t); must(s.Gather(t.Context()))(t).ID == second.ID {
			t.Error("what was told before is taken for what is told now")
		}
	})
}
