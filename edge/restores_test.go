package edge_test

import (
	"context"
	"errors"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func TestWhatDoorsKeepInPresenceIsWrittenAgainBeforeItIsTakenForWhole(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1, Node: leased(retold)})
	client, err := presence.Dial("redis://" + c.Redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	store := presence.New(presence.Config{Client: client})
	t.Cleanup(func() { store.Close() })
	told := make(chan bool, 1)
	fails := true
	c.Node(0).Restores(func(ctx context.Context) error {
		if fails {
			fails = false
			return errors.New("not yet")
		}
		whole, err := store.Whole(ctx)
		select {
		case told <- !whole && err == nil:
		default:
		}
		return nil
	})
	forget(c)
	if !await.Recv(t, "a call of restore", told) {
		t.Error("presence was whole by then")
	}
	await.True(t, "presence is whole again", func() bool {
		whole, err := store.Whole(t.Context())
		return whole && err == nil
	})
}
