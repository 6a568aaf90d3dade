package spaces

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// backends are what all tests of the package share; each test has a tenant of its own.
type backends struct {
	log    *natsd.Server
	edges  [2]*broker.Broker
	redis  *exec.Cmd
	socket string
}

var shared backends

// tenants numbers them, so that a test may run more than once.
var tenants atomic.Int64

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "agora-spaces")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	err = shared.start(dir)
	if err == nil {
		code = m.Run()
	}
	shared.stop()
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	return code, err
}

func (b *backends) start(dir string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), await.Long)
	defer cancel()
	if err := b.startRedis(ctx, dir); err != nil {
		return err
	}
	if b.log, err = natsd.Embed(ctx, natsd.Config{Nodes: 1, Dir: filepath.Join(dir, "nats")}); err != nil {
		return err
	}
	for i := range b.edges {
		cfg := broker.Config{URL: b.log.URL(), Name: fmt.Sprint("edge-", i), Memory: true, InboxBytes: 16 << 10, Audit: 300 * time.Millisecond}
		if b.edges[i], err = broker.Connect(ctx, cfg); err != nil {
			return err
		}
	}
	return nil
}

func (b *backends) startRedis(ctx context.Context, dir string) error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return errors.New("install redis-server: the tests of spaces need it")
	}
	b.socket = filepath.Join(dir, "redis")
	b.redis = exec.Command(path, "--port", "0", "--unixsocket", b.socket, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := b.redis.Start(); err != nil {
		return err
	}
	c := b.client()
	defer c.Close()
	for c.Ping(ctx).Err() != nil {
		if ctx.Err() != nil {
			return errors.New("redis-server did not start")
		}
		<-time.After(10 * time.Millisecond)
	}
	return nil
}

func (b *backends) client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: b.socket, ReadTimeout: await.Long}) // a pause of the machine is no failure
}

func (b *backends) stop() {
	for _, e := range b.edges {
		if e != nil {
			e.Close()
		}
	}
	if b.log != nil {
		b.log.Shutdown()
	}
	if b.redis != nil && b.redis.Process != nil {
		b.redis.Process.Kill()
		b.redis.Wait()
	}
}

// edge is one edge of a test: a hub on the shared backends.
type edge struct {
	*Hub
	store  *presence.Store
	log    *broker.Broker
	holder presence.Holder
	tenant string
}

// edges returns two edges of a tenant that is t's own.
func edges(t testing.TB, p presence.Config, c Config) [2]*edge {
	t.Helper()
	p.Lease = time.Hour
	tenant := fmt.Sprint(t.Name(), "-", tenants.Add(1))
	var es [2]*edge
	for i := range es {
		p.Client = shared.client()
		e := &edge{store: presence.New(p), log: shared.edges[i], tenant: tenant}
		e.holder = presence.Holder{Edge: fmt.Sprintf("%s-%d", tenant, i), Incarnation: fmt.Sprint(time.Now().UnixNano())}
		c.Broker, c.Presence = e.log, e.store
		e.Hub = New(c)
		if _, err := e.store.Leases.Renew(t.Context(), e.holder, ""); err != nil {
			t.Fatalf("taking the lease: %v", err)
		}
		if err := e.store.SetWhole(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Hub.Close(); e.store.Close() })
		es[i] = e
	}
	return es
}
