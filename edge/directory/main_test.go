package directory_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// shared is what all tests of the package share; each has a tenant of its own.
var shared struct {
	log  *broker.Broker
	dial string
}

var tenants atomic.Int64

func TestMain(m *testing.M) {
	presence.LogClient(slog.New(slog.DiscardHandler))
	code, err := run(m)
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "agora-directory")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), await.Long)
	defer cancel()
	server, err := natsd.Embed(ctx, natsd.Config{Nodes: 1, Dir: dir})
	if err != nil {
		return 1, err
	}
	defer server.Shutdown()
	if shared.log, err = broker.Connect(ctx, broker.Config{URL: server.URL(), Name: "edge", Memory: true}); err != nil {
		return 1, err
	}
	defer shared.log.Close()
	redis, err := presence.Embed()
	if err != nil {
		return 1, err
	}
	defer redis.Close()
	shared.dial = "redis://" + redis.Addr()
	return m.Run(), nil
}

// world is a tenant, and how a test changes it as edges do.
type world struct {
	testing.TB
	tenant string
	store  *presence.Store
	hub    *spaces.Hub
}

func newWorld(t testing.TB) *world { return worldAt(t, shared.dial) }

func worldAt(t testing.TB, dial string) *world {
	t.Helper()
	c, err := presence.Dial(dial + "?read_timeout=2m&max_retries=1")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, tenant: fmt.Sprint("t", tenants.Add(1)), store: presence.New(presence.Config{Client: c, Lease: time.Hour})}
	t.Cleanup(func() { w.store.Close() })
	w.must(w.store.SetWhole(t.Context()))
	w.hub = spaces.New(spaces.Config{Broker: shared.log, Presence: w.store})
	t.Cleanup(w.hub.Close)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// open returns a directory of its own.
func (w *world) open(c directory.Config) *directory.Directory {
	c.Presence, c.Broker = w.store, shared.log
	d := directory.New(c)
	w.Cleanup(d.Close)
	return d
}

// register registers an agent, and tells of it unless that is to be missed.
func (w *world) register(a agora.Agent, tell bool) {
	w.Helper()
	epoch, told, err := w.store.Registrations.Register(w.Context(), presence.Registration{Tenant: w.tenant, Principal: "p", Card: a}, time.Hour)
	w.must(err)
	if tell && told != "" {
		w.must(w.hub.AnnounceStatus(w.Context(), presence.Claim{Tenant: w.tenant, Agent: a.ID, Epoch: epoch}, told))
	}
}

// registerAgain registers an agent at a server that is not whole.
func (w *world) registerAgain(a agora.Agent) {
	w.Helper()
	_, _, err := w.store.Registrations.Register(w.Context(), presence.Registration{Tenant: w.tenant, Principal: "p", Card: a, Epoch: 1}, time.Hour)
	w.must(err)
}

// remove ends a registration, with the card that it has.
func (w *world) remove(id agora.AgentID, tell bool) {
	w.Helper()
	a, err := w.store.Directory.Agent(w.Context(), w.tenant, id)
	w.must(err)
	a.RegisteredAt = time.Time{}
	_, _, err = w.store.Registrations.Register(w.Context(), presence.Registration{Tenant: w.tenant, Principal: "p", Card: a}, time.Nanosecond)
	w.must(err)
	var c presence.Claim
	await.True(w, "the registration is over", func() bool {
		c, err = w.store.Registrations.Lapsed(w.Context(), w.tenant, id)
		return err == nil
	})
	w.must(w.store.Registrations.Unregister(w.Context(), c))
	if tell {
		w.must(w.hub.AnnounceStatus(w.Context(), c, agora.Offline))
	}
}

// names returns the names of all agents in the directory, by id.
func (w *world) names(d *directory.Directory) string {
	w.Helper()
	all, err := d.All(w.Context(), w.tenant)
	if err != nil {
		return err.Error()
	}
	names := ""
	for _, a := range all {
		names += fmt.Sprintf("%s=%s ", a.ID, a.Name)
	}
	return names
}

// becomes waits until the directory has agents of those names, by id.
func (w *world) becomes(d *directory.Directory, want string) {
	w.Helper()
	await.True(w, fmt.Sprintf("the directory is %q", want), func() bool { return w.names(d) == want })
}
