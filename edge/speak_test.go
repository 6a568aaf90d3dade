package edge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// actor returns who may be anybody at an edge.
func actor(t *testing.T, c *agoratest.Cluster, k int) *edge.Actor {
	t.Helper()
	a, err := c.Node(k).Authenticate(t.Context(), edge.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func to(id agora.AgentID, part agora.Part, stream, body string) agora.Message {
	m := agora.Message{Part: part, Stream: stream, To: agora.Address{Agent: id}}
	if body != "" {
		m.Body = json.RawMessage(body)
	}
	return m
}

// What an agent says through other edges than that of its session stands in the lanes of that session: one stream,
// whichever edge its parts came by. asCommand is a message as a command.
func asCommand(v edge.Verb, m agora.Message) edge.Command { return edge.Command{Verb: v, Message: m} }

func TestAnActorSpeaksForASessionAtAnyEdge(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	alice, _ := registered(t, c, 0, "alice")
	bob, _ := registered(t, c, 0, "bob")
	for i, m := range []agora.Message{
		to("alice", agora.Start, "s", `{"begins":1}`), to("alice", agora.Chunk, "s", `"one"`),
		to("alice", agora.Chunk, "s", `"two"`), to("alice", agora.End, "s", ""),
	} {
		out, err := actor(t, c, i%3).Do(t.Context(), "bob", asCommand(edge.Send, m))
		if err != nil || out.Seq == 0 {
			t.Fatalf("part %d at edge %d: %+v, %v", i, i%3, out, err)
		}
	}
	alice.Expect(`{"type":"message","from":"bob","stream_id":"s","payload":{"begins":1}}`)
	alice.Expect(`{"type":"message_chunk","from":"bob","stream_id":"s","chunk":"one"}`)
	alice.Expect(`{"type":"message_chunk","from":"bob","stream_id":"s","chunk":"two"}`)
	alice.Expect(`{"type":"message_end","from":"bob","stream_id":"s"}`)
	if _, err := actor(t, c, 1).Do(t.Context(), "bob", asCommand(edge.Send, to("alice", agora.Chunk, "s", `"late"`))); code(err) != agora.StreamNotFound {
		t.Errorf("a part behind the end: %v", err)
	}
	if len(bob.Pending()) > 0 {
		t.Error("bob's own connection was told of what he said elsewhere")
	}
}

func TestAnActorActsInSpacesForASession(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	registered(t, c, 0, "bob")
	carol, _ := registered(t, c, 2, "carol")
	there := actor(t, c, 1)
	if _, err := there.Do(t.Context(), "bob", edge.Command{Verb: edge.Publish, Space: "lobby", Data: json.RawMessage(`{"n":0}`)}); code(err) != agora.SpaceNotFound {
		t.Errorf("into a space that is not there: %v", err)
	}
	carol.Send(`{"type":"space.join","space":"lobby"}`)
	carol.Expect(`{"type":"space.joined"}`)
	if _, err := there.Do(t.Context(), "bob", edge.Command{Verb: edge.Publish, Space: "lobby", Data: json.RawMessage(`{"n":0}`)}); code(err) != agora.Forbidden {
		t.Errorf("of who is no member: %v", err)
	}
	if j, err := there.Do(t.Context(), "bob", edge.Command{Verb: edge.Join, Space: "lobby"}); err != nil || len(j.Joined.Members) != 2 {
		t.Fatalf("joined %+v, %v", j, err)
	}
	carol.Expect(`{"type":"space.members","joined":"bob"}`)
	out, err := there.Do(t.Context(), "bob", edge.Command{Verb: edge.OpenEvent, Space: "lobby", Data: json.RawMessage(`{"text":"a"}`)})
	if err != nil || out.Event == "" || out.Seq == 0 {
		t.Fatalf("opened %+v, %v", out, err)
	}
	if _, err := actor(t, c, 2).Do(t.Context(), "bob", edge.Command{Verb: edge.ContinueEvent, Space: "lobby", Event: out.Event, Part: agora.Chunk, Data: json.RawMessage(`{"text":"b"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Do(t.Context(), "bob", edge.Command{Verb: edge.ContinueEvent, Space: "lobby", Event: out.Event, Part: agora.End}); err != nil {
		t.Fatal(err)
	}
	carol.Expect(`{"type":"space.event.delta","event_id":` + agoratest.Quote(out.Event) + `}`)
	carol.Expect(`{"type":"space.event.delta"}`)
	carol.Expect(`{"type":"space.event.done"}`)
	if _, err := there.Do(t.Context(), "bob", edge.Command{Verb: edge.Leave, Space: "lobby"}); err != nil {
		t.Fatal(err)
	}
	carol.Expect(`{"type":"space.members","left":"bob"}`)
}

// Anyone who has no session sends whole messages, once however often they are sent with one id; anything else needs a
// holder.
func TestAnActorWithoutASession(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Patience: 200 * time.Millisecond}})
	alice, _ := registered(t, c, 0, "alice")
	m := to("alice", agora.Whole, "", `{"hello":1}`)
	m.ID = "one"
	first, err := actor(t, c, 1).Do(t.Context(), "nobody", asCommand(edge.Send, m))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := actor(t, c, 2).Do(t.Context(), "nobody", asCommand(edge.Send, m)); err != nil || again.Seq != first.Seq {
		t.Errorf("sent again: %+v, %v; want %+v", again, err, first)
	}
	if _, err := actor(t, c, 1).Do(t.Context(), "nobody", asCommand(edge.Send, to("alice", agora.Whole, "", `2`))); err != nil {
		t.Fatal(err)
	}
	alice.Expect(`{"type":"message","from":"nobody","payload":{"hello":1}}`)
	alice.Expect(`{"type":"message","from":"nobody","payload":2}`)
	if _, err := actor(t, c, 1).Do(t.Context(), "nobody", asCommand(edge.Send, to("alice", agora.Start, "s", `1`))); code(err) != agora.InvalidRequest {
		t.Errorf("a stream of nobody's: %v", err)
	}
	if _, err := actor(t, c, 1).Do(t.Context(), "nobody", asCommand(edge.Send, to("alice", agora.Chunk, "s", `1`))); code(err) != agora.StreamNotFound {
		t.Errorf("a part of a stream of nobody's: %v", err)
	}
	if _, err := actor(t, c, 1).Do(t.Context(), "nobody", asCommand(edge.Send, to("unknown", agora.Whole, "", `1`))); code(err) != agora.AgentNotFound {
		t.Errorf("to who is not there: %v", err)
	}
}

// While a session moves from edge to edge, what is said for it elsewhere waits and is done once, in the order of each
// who speaks.
func TestWhatIsSaidElsewhereFollowsASessionThatMoves(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Patience: time.Minute}})
	alice, _ := registered(t, c, 0, "alice")
	bob, w := registered(t, c, 0, "bob")
	const each = 40
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for k := range 3 {
		speaker := actor(t, c, k)
		all.Go(func() {
			for i := range each {
				if _, err := speaker.Do(ctx, "bob", asCommand(edge.Send, to("alice", agora.Whole, "", fmt.Sprintf(`[%d,%d]`, k, i)))); err != nil {
					t.Errorf("%d of speaker %d: %v", i, k, err)
					return
				}
			}
		})
	}
	said := make(chan struct{})
	go func() {
		all.Wait()
		close(said)
	}()
	for k := 1; ; k++ {
		select {
		case <-said:
		default:
			bob.Drop()
			bob, w = registered(t, c, k%3, "bob", token(w))
			continue
		}
		break
	}
	next := [3]int{}
	for range 3 * each {
		var at [2]int
		f := alice.Expect(`{"type":"message","from":"bob"}`)
		if err := json.Unmarshal([]byte(f.Raw("payload")), &at); err != nil {
			t.Fatal(err)
		}
		if at[1] != next[at[0]] {
			t.Fatalf("got %v, want number %d of that speaker", at, next[at[0]])
		}
		next[at[0]]++
	}
}

func code(err error) agora.Code {
	if err == nil {
		return ""
	}
	return agora.AsError(err).Code
}

// What an agent says in many requests, each of which has an actor of its own, counts together against its rate.
func TestRequestsOfAnAgentShareItsRate(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1, Node: edge.Config{Limits: admission.Limits{Rate: 0.01, Burst: 300}}}) // three messages
	alice, _ := registered(t, c, 0, "alice")
	for k := range 4 {
		_, err := actor(t, c, 0).Do(t.Context(), "nobody", asCommand(edge.Send, to("alice", agora.Whole, "", `1`)))
		if limited := code(err) == agora.RateLimited; limited != (k == 3) || !limited && err != nil {
			t.Errorf("message %d: %v", k, err)
		}
	}
	if _, err := actor(t, c, 0).Do(t.Context(), "somebody", asCommand(edge.Send, to("alice", agora.Whole, "", `1`))); err != nil {
		t.Errorf("another agent: %v", err)
	}
	alice.ExpectAll(`{"from":"nobody"}`, `{"from":"nobody"}`, `{"from":"nobody"}`, `{"from":"somebody"}`)
}

// What is said again under its id is the same message: whether the agent has a session now, had one, or never has any.
func TestWhatIsSaidAgainIsOneMessageWhateverBecameOfTheSession(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Grace: time.Hour})
	alice, _ := registered(t, c, 0, "alice")
	bob, w := registered(t, c, 1, "bob")
	say := func(k int) (sent, answered uint64) {
		m, r := to("alice", agora.Whole, "", `"sent"`), piece("alice", agora.Whole, "r", "q", `"answered"`)
		m.ID = "m"
		out, err := actor(t, c, k).Do(await.Context(t), "bob", asCommand(edge.Send, m))
		if err != nil {
			t.Fatal(err)
		}
		of, err := actor(t, c, k).Do(await.Context(t), "bob", asCommand(edge.Answer, r))
		if err != nil {
			t.Fatal(err)
		}
		return out.Seq, of.Seq
	}
	sent, answered := say(2)
	again := func(k int, when string) {
		if s, a := say(k); s != sent || a != answered {
			t.Errorf("said again %s they stand at %d and %d, want %d and %d", when, s, a, sent, answered)
		}
	}
	again(1, "at the session's edge")
	bob.Drop()
	await.True(t, "bob is away", func() bool {
		found, err := c.Node(0).Config().Presence.Addressees.Lookup(t.Context(), actor(t, c, 0).Principal().Tenant, "bob")
		return err == nil && found.State == presence.Away
	})
	again(0, "without the session")
	registered(t, c, 2, "bob", token(w))
	again(1, "when it has moved")
	alice.Expect(`{"type":"message","from":"bob","payload":"sent"}`)
	alice.Expect(`{"type":"reply","from":"bob","payload":"answered"}`)
}

// What an agent says by requests counts together, whatever edge each of them comes to and whether or not it has a
// session; while presence is away each edge counts by itself.
func TestRequestsOfAnAgentShareItsRateAtAllEdges(t *testing.T) {
	t.Parallel()
	const room = 40
	c := start(t, agoratest.Options{Node: edge.Config{Limits: admission.Limits{Rate: 0.01, Burst: 100 * room}}})
	alice, _ := registered(t, c, 0, "alice")
	registered(t, c, 1, "bob")
	for _, who := range []agora.AgentID{"nobody", "bob"} {
		said := 0
		for k := range 2 * room {
			_, err := actor(t, c, k%3).Do(t.Context(), who, asCommand(edge.Send, to("alice", agora.Whole, "", `1`)))
			switch {
			case err == nil:
				said++
			case code(err) != agora.RateLimited || agora.AsError(err).RetryAfter <= 0:
				t.Fatalf("message %d: %v", k, err)
			}
		}
		if said != room {
			t.Errorf("%s said %d messages, want %d", who, said, room)
		}
		for range said {
			alice.Expect(`{"type":"message","from":"` + string(who) + `"}`)
		}
	}
}
