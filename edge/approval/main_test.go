package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
)

// shared is a cluster for tests that harm none; each has a tenant of its own.
var shared [2]*broker.Broker

var lastTenant atomic.Int64

func TestMain(m *testing.M) {
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
	dir, err := os.MkdirTemp("", "agora-approval")
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
	for k := range shared {
		if shared[k], err = broker.Connect(ctx, config(server, 1, k)); err != nil {
			return 1, err
		}
		defer shared[k].Close()
	}
	return m.Run(), nil
}

func config(s *natsd.Server, replicas, k int) broker.Config {
	return broker.Config{URL: s.URL(), Name: fmt.Sprint("edge-", k), Replicas: replicas, ShardBytes: 16 << 20, GiveUp: time.Minute, Election: time.Minute}
}

// cluster starts a cluster for a test alone, with two edges.
func cluster(t *testing.T, nodes int) (*natsd.Server, [2]*broker.Broker) {
	t.Helper()
	s, err := natsd.Embed(await.Context(t), natsd.Config{Nodes: nodes, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	var all [2]*broker.Broker
	for k := range all {
		if all[k], err = broker.Connect(await.Context(t), config(s, nodes, k)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(all[k].Close)
	}
	return s, all
}

// edge returns the approvals of one more edge.
func edge(t *testing.T, b *broker.Broker, change func(*Config)) *Approvals {
	t.Helper()
	cfg := Config{Book: b.Book(), Now: b.Now}
	if change != nil {
		change(&cfg)
	}
	a := New(cfg)
	t.Cleanup(a.Close)
	return a
}

// pair returns the approvals of two edges that share a cluster, and a tenant that nobody has.
func pair(t *testing.T, change func(*Config)) (a, b *Approvals, tenant string) {
	t.Helper()
	return edge(t, shared[0], change), edge(t, shared[1], change), fmt.Sprint("t", lastTenant.Add(1))
}

func request(tenant, id string) Approval {
	return Approval{Tenant: tenant, ID: id, Agent: "sub", To: "host", Request: json.RawMessage(`{"action":"require_approval", "n":1e2}`), Head: []byte("head"), Trace: "trace"}
}

func ask(t *testing.T, a *Approvals, q Approval) Approval {
	t.Helper()
	d, err := a.Ask(await.Context(t), q)
	if err != nil {
		t.Fatalf("Ask(%s) = %v", q.ID, err)
	}
	return d
}

func decide(t *testing.T, a *Approvals, tenant, id string, approved bool, by string) (Approval, error) {
	t.Helper()
	return a.Decide(await.Context(t), tenant, "sub", id, Verdict{Approved: approved, By: by, Note: "so be it"})
}

func wantCode(t *testing.T, what string, err error, want agora.Code) {
	t.Helper()
	if err == nil || agora.AsError(err).Code != want {
		t.Errorf("%s = %v, want %s", what, err, want)
	}
}
