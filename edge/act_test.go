package edge_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// Anyone who has an act done does not hear of it, as its edge loses the log meanwhile: it asks again, and the act is
// done once, be it a message, an event or a part of one.
func TestAnActWhoseAnswerIsLostIsDoneOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Patience: await.Long}})
	registered(t, c, 0, "bob")
	alice, _ := registered(t, c, 2, "alice")
	alice.Send(`{"type":"space.join","space":"room"}`)
	alice.Expect(`{"type":"space.joined"}`)
	bob := actor(t, c, 1)
	lost := func(does func() (edge.Outcome, error)) (out edge.Outcome) {
		t.Helper()
		c.HoldLog(0, true) // the session's edge stores nothing yet
		said := make(chan error, 1)
		go func() {
			var err error
			out, err = does()
			said <- err
		}()
		<-time.After(200 * time.Millisecond) // for the question to get there; where it does not, it is asked later
		c.CutLog(1)
		c.HoldLog(0, false)
		<-time.After(200 * time.Millisecond) // for the answer to be lost
		c.MendEdge(1)
		if err := await.Recv(t, "what became of it", said); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if _, err := bob.Do(t.Context(), "bob", edge.Command{Verb: edge.Join, Space: "room"}); err != nil {
		t.Fatal(err)
	}
	alice.Expect(`{"type":"space.members","joined":"bob"}`)
	var event string
	for _, does := range []func() (edge.Outcome, error){
		func() (edge.Outcome, error) {
			return bob.Do(t.Context(), "bob", asCommand(edge.Send, to("alice", agora.Whole, "", `"hello"`)))
		},
		func() (edge.Outcome, error) {
			return bob.Do(t.Context(), "bob", edge.Command{Verb: edge.OpenEvent, Space: "room", Data: json.RawMessage(`{"text":"a"}`)})
		},
		func() (edge.Outcome, error) {
			return bob.Do(t.Context(), "bob", edge.Command{Verb: edge.ContinueEvent, Space: "room", Event: event, Part: agora.Chunk, Data: json.RawMessage(`{"text":"b"}`)})
		},
		func() (edge.Outcome, error) {
			return bob.Do(t.Context(), "bob", edge.Command{Verb: edge.ContinueEvent, Space: "room", Event: event, Part: agora.End})
		},
	} {
		out := lost(does)
		if out.Seq == 0 {
			t.Fatalf("the outcome is %+v, want where it is stored", out)
		}
		if out.Event != "" {
			event = out.Event
		}
	}
	alice.ExpectAll(`{"type":"message","from":"bob","payload":"hello"}`, `{"type":"space.event.delta"}`,
		`{"type":"space.event.delta"}`, `{"type":"space.event.done"}`)
	alice.ExpectNone(during(500 * time.Millisecond))
}
