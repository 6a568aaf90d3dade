package presence_test

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/presence"
)

func unavailable(err error) bool {
	e, ok := errors.AsType[*agora.Error](err)
	return ok && e.Code == agora.Unavailable && e.RetryAfter > 0
}

func TestAServerThatIsAwayIsUnavailableAndComesBack(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	srv := &server{t: t, url: "redis://" + r.Addr()}
	s := srv.store(presence.Config{})
	c := claimIn(t, s, "a", "active")
	ok(t, s.Ping(t.Context()))
	r.Stop()
	calls := map[string]func() error{
		"Ping":      func() error { return s.Ping(t.Context()) },
		"Renew":     func() error { _, err := s.Leases.Renew(t.Context(), claimant("a", "e1").Holder, ""); return err },
		"Alive":     func() error { _, err := s.Leases.Alive(t.Context(), claimant("a", "e1").Holder); return err },
		"Claim":     func() error { _, err := s.Sessions.Claim(t.Context(), claimant("b", "e1")); return err },
		"Begin":     func() error { _, err := s.Sessions.Begin(t.Context(), c); return err },
		"Ending":    func() error { _, _, err := s.Sessions.Ending(t.Context(), tenant, "a"); return err },
		"Lookup":    func() error { _, err := s.Addressees.Lookup(t.Context(), tenant, "a"); return err },
		"Lose":      func() error { return s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false) },
		"Return":    func() error { return s.Sessions.Return(t.Context(), c) },
		"Lanes.Use": func() error { return s.Lanes.Use(t.Context(), c, agora.ToAgent(tenant, "b"), nil) },
		"Agents":    func() error { _, err := s.Directory.Agents(t.Context(), tenant); return err },
		"Join":      func() error { _, err := s.Spaces.Join(t.Context(), c, "room", presence.Public, true); return err },
		"Leave":     func() error { _, err := s.Spaces.Leave(t.Context(), c, "room"); return err },
		"Members":   func() error { _, err := s.Spaces.Members(t.Context(), tenant, "room"); return err },
		"IsMember":  func() error { _, err := s.Spaces.IsMember(t.Context(), tenant, "room", "a"); return err },
		"Spaces":    func() error { _, err := s.Spaces.List(t.Context(), tenant); return err },
		"Note":      func() error { return s.Operators.Note(t.Context(), tenant, "a", presence.Event{}) },
		"History":   func() error { _, err := s.Operators.History(t.Context(), tenant, "a"); return err },
		"Edges":     func() error { _, err := s.Leases.Edges(t.Context()); return err },
		"Cursors": func() error {
			_, err := s.Operators.Cursors(t.Context(), tenant, "room", []agora.AgentID{"a"})
			return err
		},
		"Dials.Find":    func() error { _, _, err := s.Dials.Find(t.Context(), tenant, "a"); return err },
		"Orphans":       func() error { _, err := s.Dials.Orphans(t.Context(), 10); return err },
		"Keep":          func() error { _, err := s.Dials.Keep(t.Context(), new(presence.Orphan), 0); return err },
		"Left":          func() error { return s.Dials.Left(t.Context(), presence.Orphan{}) },
		"Adopted":       func() error { return s.Dials.Adopted(t.Context(), presence.Orphan{}) },
		"Offer":         func() error { return s.Dials.Offer(t.Context(), c) },
		"Dials.SetBy":   func() error { return s.Dials.SetBy(t.Context(), c, nil) },
		"FreeAddress":   func() error { return s.Dials.FreeAddress(t.Context(), c, presence.Dialled{Address: "x:1"}) },
		"Dials.Holders": func() error { _, err := s.Dials.Holders(t.Context(), presence.Holder{}); return err },
		"Forsaken":      func() error { return s.Dials.Forsaken(t.Context(), claimant("a", "e1").Holder) },
		"EndSession":    func() error { return s.Operators.EndSession(t.Context(), tenant, "b") },
		"Look":          func() error { _, err := s.Operators.Inspect(t.Context(), tenant, "a"); return err },
		"WroteTo": func() error {
			_, err := s.Addressees.WroteTo(t.Context(), tenant, "a", agora.ToAgent(tenant, "b"))
			return err
		},
		"SetCard": func() error { _, err := s.Directory.SetCard(t.Context(), c, "alice", agora.Agent{ID: "a"}); return err },
		"Agent":   func() error { _, err := s.Directory.Agent(t.Context(), tenant, "a"); return err },
		"Register": func() error {
			return second(s.Registrations.Register(t.Context(), registration(agora.Agent{ID: "r"}, "p"), time.Hour))
		},
		"Changed": func() error { return second(s.Directory.Changed(t.Context(), tenant, presence.Mark{})) },
		"Missing": func() error {
			_, err := s.Sessions.Missing(t.Context(), claimant("a", "e1").Holder, slices.Values([]presence.Claim{c}))
			return err
		},
		"Sweep": func() error {
			_, err := s.Sweep(t.Context(), claimant("a", "e1").Holder, 10)
			return err
		},
	}
	for name, f := range calls {
		if err := f(); !unavailable(err) {
			t.Errorf("%s = %v, want UNAVAILABLE", name, err)
		}
	}
	r.Start()
	await.True(t, "the server is back", func() bool { return s.Ping(t.Context()) == nil && s.SetWhole(t.Context()) == nil })
	// Restarted, it has none of the scripts: pipelines, too, must teach it them again.
	for name, f := range calls {
		if err := f(); unavailable(err) {
			t.Errorf("%s = %v after the server came back", name, err)
		}
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Addressees.Lookup(ctx, tenant, "a"); !errors.Is(err, context.Canceled) {
			t.Fatalf("lookup = %v, want that the context is over", err)
		}
	})
}

func TestACallEndsWithItsTimeThoughTheServerSaysNothing(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, as a frozen server's machine does
	ok(t, err)
	defer mute.Close()
	for what, c := range map[string]struct{ answer, call time.Duration }{
		"the call has little time":  {time.Hour, 100 * time.Millisecond},
		"an answer has little time": {100 * time.Millisecond, time.Hour},
	} {
		presence.SetAnswerTime(t, c.answer)
		for _, kind := range []string{"redis://", "redis-cluster://"} {
			client, err := presence.Dial(kind + mute.Addr().String() + "?dial_timeout=1h&read_timeout=1h&write_timeout=1h&pool_timeout=1h")
			ok(t, err)
			s := presence.New(presence.Config{Client: client})
			ctx, cancel := context.WithTimeout(t.Context(), c.call)
			answers := make(chan error, 1)
			go func() {
				_, err := s.Addressees.Lookup(ctx, tenant, "a")
				answers <- err
			}()
			if err := await.Recv(t, kind+": "+what, answers); !unavailable(err) {
				t.Errorf("%s: lookup = %v, want UNAVAILABLE", kind, err)
			}
			cancel()
			s.Close()
		}
	}
}

func TestAnEmbeddedServerClosesOnceAndForAll(t *testing.T) {
	e, err := presence.Embed()
	ok(t, err)
	s := (&server{t: t, url: "redis://" + e.Addr()}).store(presence.Config{})
	ok(t, s.Ping(t.Context()))
	e.Close()
	e.Close()
	if err := s.Ping(t.Context()); !unavailable(err) {
		t.Fatalf("ping = %v, want UNAVAILABLE", err)
	}
}

func TestDialRefusesWhatItCannotReachWithoutQuotingIt(t *testing.T) {
	for _, u := range []string{"redis://:se cret@h:1", "nats://:secret@h:1", "redis://:secret@h:1/x", "redis-sentinel://h:1?db=x&a=secret", ":secret"} {
		c, err := presence.Dial(u)
		if err == nil {
			c.Close()
			t.Errorf("%s was taken", u)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "cret@") {
			t.Errorf("error quotes the URL: %v", err)
		}
	}
	for _, u := range []string{"redis://h:1", "rediss://u:p@h:1/2?dial_timeout=1s", "redis-cluster://h:1?addr=g:2", "redis-sentinel://h:1?master_name=main"} {
		c, err := presence.Dial(u)
		ok(t, err)
		c.Close()
	}
}

// What is known of a cluster's masters has to be looked at far sooner than the minute that the client takes: one that
// has died tells nobody where its slots have gone, and edges are to serve again within ten seconds of the cluster.
func TestWhereTheMastersOfAClusterAreIsLookedAtOften(t *testing.T) {
	c, err := presence.Dial("redis-cluster://h:1?addr=g:2")
	ok(t, err)
	defer c.Close()
	if age := c.(*redis.ClusterClient).Options().ClusterStateReloadInterval; age <= 0 || age > 3*time.Second {
		t.Errorf("the map of the cluster may be %v old, want 3 s at most", age)
	}
}

// A script that reads a key it was not given would break on a Redis Cluster of more than one node.
func TestScriptsTakeTheirKeysFromOutside(t *testing.T) {
	files, err := presence.Sources()
	ok(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		ok(t, err)
		if strings.Contains(string(b), "agora:") {
			t.Errorf("%s makes up a key", f)
		}
	}
}

// A user that lacks a right is told from a server that is away.
func TestWhoLacksARightIsToldSo(t *testing.T) {
	t.Parallel()
	r := redises.lend(t)
	s := &server{t: t, url: "redis://" + r.Addr(), edge: "redis://edge:s3cret@" + r.Addr()}
	flush(s)
	s.admit()
	admin := s.client()
	defer admin.Close()
	st := s.store(presence.Config{})
	ok(t, admin.(redis.UniversalClient).Do(t.Context(), "acl", "setuser", "edge", "-ping", "-hset").Err())
	calls := map[string]func() error{
		"by itself":   func() error { return st.Ping(t.Context()) },
		"by a script": func() error { _, err := st.Sessions.Claim(t.Context(), claimant("b", "e1")); return err },
	}
	for about, call := range calls {
		if err := call(); err == nil || !strings.Contains(err.Error(), "lacks rights") {
			t.Errorf("%s: %v, want that the user lacks rights", about, err)
		}
	}
}

// TestARefusedConnectionSaysNothingOfClaims has Redis refuse the edge's password once it connects again, as after a
// change of the password that the edge does not know.
func TestARefusedConnectionSaysNothingOfClaims(t *testing.T) {
	t.Parallel()
	addr := servers.RedisGuarded(t, nil, "--user", "edge", "on", ">first", "~*", "&*", "+@all")
	srv := &server{t: t, url: "redis://edge:first@" + addr}
	s := srv.store(presence.Config{})
	c, other := claimIn(t, s, "a", "active"), claimIn(t, s, "b", "active")
	operator := redis.NewClient(&redis.Options{Addr: addr})
	defer operator.Close()
	ok(t, operator.Do(t.Context(), "acl", "setuser", "edge", "resetpass", ">second").Err())
	ok(t, operator.Do(t.Context(), "client", "kill", "user", "edge").Err())
	h := claimant("a", "e1").Holder
	found, err := s.Sessions.Reassert(t.Context(), h, []presence.Held{heldBy(c), heldBy(other)})
	if !unavailable(err) || len(found.Deposed) > 0 {
		t.Errorf("Reassert = %+v, %v; want UNAVAILABLE, and nobody deposed", found, err)
	}
	if missing, err := s.Sessions.Missing(t.Context(), h, slices.Values([]presence.Claim{c, other})); !unavailable(err) {
		t.Errorf("Missing = %v, %v; want UNAVAILABLE", missing, err)
	}
}
