package edge_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/presence"
)

// Of two edges that begin a cluster at the same moment one says that presence is whole, and the other, which asked
// just before, must not take it for lost.
func TestAnEdgeThatIsNotQuiteTheFirstTakesNothingForLost(t *testing.T) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	log, err := broker.Embed(ctx, broker.ServerConfig{Dir: t.TempDir()})
	must(err)
	defer log.Shutdown()
	redis, err := presence.Embed()
	must(err)
	defer redis.Close()
	client, err := presence.Dial("redis://" + redis.Addr())
	must(err)
	store := presence.New(presence.Config{Client: client})
	defer store.Close()
	connect := func(name string) *broker.Broker {
		b, err := broker.Connect(ctx, broker.Config{URL: log.URL(), Name: name})
		must(err)
		return b
	}
	first, second := connect("first"), connect("second")
	defer first.Close()
	defer second.Close()
	retire, err := first.Answer("elders", func(context.Context, []byte) []byte {
		if err := store.SetWhole(ctx); err != nil { // the second one has asked already
			t.Error(err)
		}
		return []byte("1")
	})
	must(err)
	defer retire()

	said := new(lines)
	n, err := edge.Start(ctx, edge.Config{ID: "second", Broker: second, Presence: store, Log: slog.New(slog.NewTextHandler(said, nil))})
	must(err)
	defer n.Close()
	if strings.Contains(said.String(), "lost") {
		t.Errorf("an edge that has begun says: %s", said)
	}
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
