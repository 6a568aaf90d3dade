package client_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// An application that continues after the position of a receipt, which is another mailbox's, or another log's, gets all
// that it was never given.
func TestTheSeqOfAReceiptHidesNothing(t *testing.T) {
	t.Parallel()
	cluster := agoratest.Start(t, agoratest.Options{Edges: 1})
	ctx := await.Context(t)
	connect := func(cfg client.Config) *client.Client {
		t.Helper()
		cfg.URLs = cluster.URLs()
		c, err := client.Dial(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	writer := connect(client.Config{Agent: "writer"})
	connect(client.Config{Agent: "other"})
	connect(client.Config{Agent: "late"}).Close()
	s, err := writer.Join(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := writer.Send(ctx, "late", n); err != nil {
			t.Fatal(err)
		}
		if err := s.Publish(ctx, map[string]any{"n": n}); err != nil {
			t.Fatal(err)
		}
	}
	raw := agoratest.Connect(t, agoratest.Direct{}, cluster.URL(0), "agent_id=raw", nil)
	var seq uint64
	for n := range 100 { // far behind all events: what stands among them hides some, or none
		raw.Send(fmt.Sprintf(`{"type":"send","id":"%d","to":"other","payload":1}`, n))
		seq = raw.Await(`{"type":"receipt"}`).Seq()
	}

	gaps := make(chan client.Gap, 4)
	late := connect(client.Config{Agent: "late", LastSeq: seq, OnGap: func(g client.Gap) { gaps <- g }})
	next := 0
	for m, err := range late.Messages(ctx) {
		if err != nil || string(m.Payload) != fmt.Sprint(next) {
			t.Fatalf("%+v, %v; want %d", m, err, next)
		}
		if next++; next == 3 {
			break
		}
	}
	await.Recv(t, "a gap", gaps)
	joined, err := late.Join(ctx, "s", client.JoinOptions{LastSeq: seq})
	if err != nil {
		t.Fatal(err)
	}
	takeEvents(t, joined, 3)
	await.Recv(t, "a gap", gaps)
}

// takeEvents takes events of a space, numbered from 0.
func takeEvents(t *testing.T, s *client.Space, count int) {
	t.Helper()
	next := 0
	for e, err := range s.Events(await.Context(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Roster != nil {
			continue
		}
		var d struct{ N int }
		if err := json.Unmarshal(e.Data, &d); err != nil || d.N != next {
			t.Fatalf("%s, %v; want %d", e.Data, err, next)
		}
		if next++; next == count {
			return
		}
	}
}
