package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// TestWhatARestartedServerHasForgottenIsMarked: a record is stored, its answer is lost, the mailbox overflows, and the
// server starts again, which then knows those ids alone that still stand in its log. Sent again under its id the record
// is stored a second time: who got the first must be able to tell.
func TestWhatARestartedServerHasForgottenIsMarked(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]int{"its lane's first": 0, "one after another": 1} {
		t.Run(name, func(t *testing.T) {
			x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
			for range before {
				store(t, x.old, text("0"))
			}
			x.c.Deafen()
			x.old.Put(text("1"), func(r Result) { x.results <- r })
			await.True(t, "it is stored", func() bool {
				n, err := x.e2.Unread(await.Context(t), bob, 0)
				return err == nil && n == before+1
			})
			flood(t, x.e2, 4)
			x.srv.StopNode(0)
			x.c.Reset()
			if err := x.srv.StartNode(0); err != nil {
				t.Fatal(err)
			}
			if r := await.Recv(t, "the record is sent again", x.results); r.Err != nil || r.Again {
				t.Fatalf("sent again it is %+v, want it stored", r)
			}
			await.True(t, "the other edge is back, too", func() bool { return x.e2.Connected() })
			x.want("gap", "flood", "flood", "flood", "1 again")
		})
	}
}

// TestWhatTheClusterSaysTwiceForARestartIsMarked: the same of what is published outside any lane, under a key of its
// own.
func TestWhatTheClusterSaysTwiceForARestartIsMarked(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
	x.c.Deafen()
	done := make(chan error, 1)
	ctx := await.Context(t)
	go func() {
		_, err := x.e1.Publish(ctx, "v1", agora.Message{Kind: agora.Roster, To: bob, Body: []byte("roster")})
		done <- err
	}()
	await.True(t, "it is stored", func() bool {
		n, err := x.e2.Unread(await.Context(t), bob, 0)
		return err == nil && n == 1
	})
	flood(t, x.e2, 4)
	x.srv.StopNode(0)
	x.c.Reset()
	if err := x.srv.StartNode(0); err != nil {
		t.Fatal(err)
	}
	if err := await.Recv(t, "the roster is sent again", done); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the other edge is back, too", func() bool { return x.e2.Connected() })
	got := listen(t, x.e2, bob, From{TailAt: time.Now()}).read(t, 4)
	if at := slices.IndexFunc(got, func(m agora.Message) bool { return m.Kind == agora.Roster }); at < 0 || !got[at].Again {
		t.Errorf("it is not marked: %v", got)
	}
}
