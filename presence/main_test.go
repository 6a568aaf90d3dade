package presence_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/internal/simnet"
	"github.com/agora-relay/agora/presence"
)

const tenant = agora.DefaultTenant

// shelf is servers of one kind, each of which one test at a time has for its own. There are as many as tests have
// needed at once.
type shelf struct {
	start func(dir string) (*servers.RedisServer, error)

	mu   sync.Mutex // guards the fields below
	free []*servers.RedisServer
	all  []*servers.RedisServer
	dirs []string
}

var (
	redises  = shelf{start: servers.RedisIn}
	clusters = shelf{start: servers.RedisCluster}
)

// lend gives a server to a test until it ends. It holds what the last one left there.
func (s *shelf) lend(t *testing.T) *servers.RedisServer {
	t.Helper()
	r, err := s.take()
	ok(t, err)
	t.Cleanup(func() {
		r.Start() // a test may have stopped it
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, r)
	})
	return r
}

func (s *shelf) take() (*servers.RedisServer, error) {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		defer s.mu.Unlock()
		r := s.free[n-1]
		s.free = s.free[:n-1]
		return r, nil
	}
	s.mu.Unlock()
	dir, err := os.MkdirTemp("", "agora-presence")
	if err != nil {
		return nil, err
	}
	r, err := s.start(dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.dirs = append(s.all, r), append(s.dirs, dir)
	return r, err
}

// clear stops all servers.
func (s *shelf) clear() {
	for i, r := range s.all {
		r.Stop()
		os.RemoveAll(s.dirs[i])
	}
}

func TestMain(m *testing.M) {
	presence.LogClient(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		redises.clear()
		clusters.clear()
		os.Exit(code)
	}))
}

// server is a presence server of one kind, and what a test may do to it.
type server struct {
	t     *testing.T
	url   string
	edge  string                                  // the URL for edges, where they have a user of their own there; else empty
	dial  func(context.Context) (net.Conn, error) // where it has no address; else nil
	empty func()                                  // has it lose its data and its scripts
}

// eachServer runs a test against every kind of server that Agora works with, side by side, and beside other tests: it
// is all that a test does.
func eachServer(t *testing.T, f func(t *testing.T, s *server)) {
	t.Helper()
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		r := redises.lend(t)
		s := &server{t: t, url: "redis://" + r.Addr(), edge: "redis://edge:s3cret@" + r.Addr()}
		s.empty = func() { // which forgets its users as well
			r.Stop()
			r.Start()
			s.admit()
		}
		flush(s)
		s.admit()
		f(t, s)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		s := &server{t: t, url: "redis-cluster://" + clusters.lend(t).Addr()}
		s.empty = func() { flush(s) }
		s.empty()
		f(t, s)
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		e, err := presence.Embed()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		s := &server{t: t, url: "redis://" + e.Addr()}
		s.empty = func() { flush(s) }
		f(t, s)
	})
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		f(t, inProcess(t))
	})
}

// inProcess starts a server without an address. Within a bubble of synctest it goes by the bubble's time.
func inProcess(t *testing.T) *server {
	t.Helper()
	e, err := presence.EmbedInProcess()
	ok(t, err)
	t.Cleanup(e.Close)
	s := &server{t: t, dial: func(context.Context) (net.Conn, error) {
		c, err := e.Dial()
		if err != nil {
			return nil, err
		}
		return simnet.Buffer(c), nil // who writes does not wait for who reads
	}}
	s.empty = func() { flush(s) }
	return s
}

// admit has the server know the user that edges are there, with the rights that are shipped: what a test does is
// refused where those lack something.
func (s *server) admit() {
	s.t.Helper()
	rights, err := os.ReadFile("../deploy/redis/edge.acl")
	ok(s.t, err)
	set := []any{"acl", "setuser", "edge", "reset", "on", ">s3cret"}
	for rule := range strings.FieldsSeq(string(rights)) {
		set = append(set, rule)
	}
	c, err := presence.Dial(s.url)
	ok(s.t, err)
	defer c.Close()
	ok(s.t, c.(redis.UniversalClient).Do(s.t.Context(), set...).Err())
}

// flush makes a server forget its data and its scripts.
func flush(s *server) {
	c := s.client()
	defer c.Close()
	if err := errors.Join(c.FlushAll(s.t.Context()).Err(), c.ScriptFlush(s.t.Context()).Err()); err != nil {
		s.t.Fatal(err)
	}
}

// client returns a client that may do all there.
func (s *server) client() presence.Client {
	s.t.Helper()
	return s.clientAt(s.url)
}

func (s *server) clientAt(url string) presence.Client {
	s.t.Helper()
	if s.dial != nil {
		c := redis.NewClient(&redis.Options{
			Addr:       "127.0.0.1:6379", // nobody looks there, and it is no name to be resolved
			Dialer:     func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) },
			MaxRetries: 1, DialerRetries: 1, ContextTimeoutEnabled: true, DialTimeout: 2 * time.Minute, ReadTimeout: 2 * time.Minute,
		})
		c.AddHook(oneSlot{s.t})
		return c
	}
	c, err := presence.Dial(url + "?dial_timeout=2m&read_timeout=2m&max_retries=1") // a pause of the machine is no failure
	if err != nil {
		s.t.Fatal(err)
	}
	c.(redis.UniversalClient).AddHook(oneSlot{s.t})
	return c
}

// store returns a Store as one more edge would have it. Nothing lapses by itself but what the test has set.
func (s *server) store(cfg presence.Config) *presence.Store {
	s.t.Helper()
	cfg.Client = s.clientAt(cmp.Or(s.edge, s.url))
	cfg.Lease, cfg.Grace = cmp.Or(cfg.Lease, time.Hour), cmp.Or(cfg.Grace, time.Hour)
	cfg.Known, cfg.EmptyGrace = cmp.Or(cfg.Known, time.Hour), cmp.Or(cfg.EmptyGrace, time.Hour)
	st := presence.New(cfg)
	s.t.Cleanup(func() { st.Close() })
	ok(s.t, st.SetWhole(s.t.Context())) // no edge holds anything, or the test tells what it does
	return st
}

// oneSlot fails a test whose script takes keys of several slots, as a Redis Cluster would.
type oneSlot struct{ t *testing.T }

func (oneSlot) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h oneSlot) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.check(cmd)
		return next(ctx, cmd)
	}
}

func (h oneSlot) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			h.check(c)
		}
		return next(ctx, cmds)
	}
}

func (h oneSlot) check(cmd redis.Cmder) {
	a := cmd.Args()
	if !strings.HasPrefix(cmd.Name(), "eval") || len(a) < 4 {
		return
	}
	n, _ := a[2].(int)
	for _, k := range a[3 : 3+n] {
		if got, want := slot(fmt.Sprint(k)), slot(fmt.Sprint(a[3])); got != want {
			h.t.Errorf("script takes %v: slots %d and %d", a[3:3+n], want, got)
		}
	}
	if n == 0 {
		h.t.Errorf("script without keys: no node to run on")
	}
}

// slot is the slot of a key in a Redis Cluster: CRC16 (XMODEM) of its tag.
func slot(key string) int {
	if i := strings.IndexByte(key, '{'); i >= 0 {
		if j := strings.IndexByte(key[i+1:], '}'); j > 0 {
			key = key[i+1 : i+1+j]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % 16384)
}

// claimant is a request of one agent at one edge, with everything else filled in.
func claimant(id agora.AgentID, edge string) presence.ClaimRequest {
	return presence.ClaimRequest{
		Tenant: tenant, Agent: id, Principal: "alice",
		Holder: presence.Holder{Edge: edge, Incarnation: edge + "-life"},
		Conn:   "ws-" + edge, Session: "s-" + edge, Token: "token-" + edge,
		Card: agora.Agent{ID: id, Name: "the " + string(id)},
	}
}

// must returns v where err is nil.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// renewed gives a holder a lease.
func renewed(t *testing.T, s *presence.Store, h presence.Holder) {
	t.Helper()
	if _, err := s.Leases.Renew(t.Context(), h, ""); err != nil {
		t.Fatal(err)
	}
}

// begun claims and begins, settling every past holder as one that did not hand over.
func begun(t *testing.T, s *presence.Store, r presence.ClaimRequest) (presence.Claim, presence.Record) {
	t.Helper()
	c, err := s.Sessions.Claim(t.Context(), r)
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	for _, p := range c.Unsettled {
		if _, err := s.Sessions.Settle(t.Context(), c, p, false); err != nil {
			t.Fatal(err)
		}
	}
	return c, must(s.Sessions.Begin(t.Context(), c))(t)
}

// ended ends a session and finishes it.
func ended(t *testing.T, s *presence.Store, c presence.Claim) {
	t.Helper()
	ok(t, s.Sessions.End(t.Context(), c))
	e, _, err := s.Sessions.Ending(t.Context(), c.Tenant, c.Agent)
	ok(t, err)
	ok(t, s.Sessions.Finished(t.Context(), e, false))
}
