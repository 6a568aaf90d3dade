package edge_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// Of two edges that begin a cluster at the same moment one says that presence is whole, and the other, which asked
// just before, must not take it for lost.
func TestAnEdgeThatIsNotQuiteTheFirstTakesNothingForLost(t *testing.T) {
	t.Parallel()
	said := begins(t, func(store *presence.Store) {
		if err := store.SetWhole(t.Context()); err != nil { // the second one has asked already
			t.Error(err)
		}
	})
	if strings.Contains(said, "lost") {
		t.Errorf("an edge that has begun says: %s", said)
	}
}

// An edge that has known presence whole may be frozen, and still be asked.
func TestAnEdgeBeginsThoughAnElderDoesNotAnswer(t *testing.T) {
	t.Parallel()
	begins(t, func(*presence.Store) { <-t.Context().Done() })
}

// begins starts an edge on a presence that is not whole, where an elder does something before it answers. It returns
// what the edge says.
func begins(t *testing.T, elder func(*presence.Store)) string {
	t.Helper()
	ctx := await.Context(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	log, err := natsd.Embed(ctx, natsd.Config{})
	must(err)
	t.Cleanup(log.Shutdown)
	redis, err := presence.Embed()
	must(err)
	t.Cleanup(redis.Close)
	client, err := presence.Dial("redis://" + redis.Addr())
	must(err)
	store := presence.New(presence.Config{Client: client})
	t.Cleanup(func() { store.Close() })
	connect := func(name string) *broker.Broker {
		b, err := broker.Connect(ctx, broker.Config{URL: log.URL(), Name: name, Memory: true})
		must(err)
		t.Cleanup(b.Close)
		return b
	}
	first, second := connect("first"), connect("second")
	_, err = first.Answer("elders", func(context.Context, []byte) []byte {
		elder(store)
		return []byte("1")
	})
	must(err)
	said := new(lines)
	n, err := edge.Start(ctx, edge.Config{ID: "second", Lease: 5 * time.Second, Broker: second, Presence: store, Log: slog.New(slog.NewTextHandler(said, nil))})
	must(err)
	t.Cleanup(n.Close)
	return said.String()
}

// lines is what a log has said.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
