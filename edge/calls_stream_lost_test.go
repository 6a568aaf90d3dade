package edge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// A caller's edge dies: another one ends what was open, and that alone, once.
func TestAStreamOfADeadEdgesCallerIsAbortedOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(8 * time.Second), Leases: []time.Duration{3 * time.Second}})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, streamed("bob", "r"))
	says(t, a, 1)
	hears(bob, 1)
	over := calls(t, c, 0, streamed("bob", "over"))
	concludes(t, over)
	bob.Expect(`{"type":"message","stream_id":"over"}`, `{"type":"message_end","stream_id":"over"}`)
	answered := calls(t, c, 0, streamed("bob", "answered"))
	bob.Expect(`{"type":"message","stream_id":"answered"}`)
	bob.Send(`{"type":"reply","to":"anna","stream_id":"s","stream":true,"payload":{"request_id":"answered"}}`)
	if m, err := answered.Next(await.Context(t)); err != nil || m.Part != agora.Start {
		t.Fatalf("Next = %+v, %v; want the start", m, err)
	}
	c.CutEdge(0)
	bob.ExpectAll(
		fmt.Sprintf(asksAbort, "STREAM_ABORTED"), `{"type":"error","code":"STREAM_ABORTED","from":"anna","request_id":"over"}`,
		`{"type":"error","code":"STREAM_ABORTED","from":"anna","stream_id":"answered"}`, `{"type":"cancel","from":"anna","stream_id":"s"}`)
	for _, a := range []*call.Answer{a, over, answered} {
		if err := a.Say(t.Context(), agora.Message{Part: agora.End}); err == nil {
			t.Error("an edge that is cut off says the end")
		}
		a.Close()
	}
	c.MendEdge(0)
	bob.ExpectNone(during(2 * time.Second))
}

// An edge that is closed ends what its callers had open by itself, not by others that find it gone.
func TestAnEdgeThatIsClosedAbortsTheStreamsOfItsCallers(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(time.Hour)})
	bob, _ := registered(t, c, 1, "bob")
	calls(t, c, 0, streamed("bob", "r"))
	hears(bob, 0)
	c.StopEdge(0)
	bob.Expect(fmt.Sprintf(asksAbort, "STREAM_ABORTED"))
	bob.ExpectNone(during(500 * time.Millisecond))
}

// The edge of a caller can't reach presence, though the log: others have given it up. What it still says comes to
// nobody.
func TestNothingFollowsAStreamThatWasAborted(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(8 * time.Second), Leases: []time.Duration{3 * time.Second}})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, streamed("bob", "r"))
	says(t, a, 1)
	hears(bob, 1)
	c.CutPresence(0)
	bob.Expect(fmt.Sprintf(asksAbort, "STREAM_ABORTED"))
	c.MendEdge(0)
	await.True(t, "its caller is told", func() bool {
		return code(a.Say(t.Context(), agora.Message{Part: agora.End})) == agora.StreamAborted
	})
	a.Close()
	bob.ExpectNone(during(2 * time.Second))
}

func TestNothingIsMissingNorTwiceWhereTheLogWasAway(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 1, "bob")
	const rounds, each = 4, 25
	a := calls(t, c, 0, streamed("bob", "r"))
	said := make(chan error, 1)
	go func() {
		var err error
		for n := 1; n <= rounds*each && err == nil; n++ {
			err = a.Say(await.Context(t), agora.Message{Part: agora.Chunk, Body: fmt.Append(nil, n)})
		}
		if err == nil {
			err = a.Say(await.Context(t), agora.Message{Part: agora.End, Body: []byte(`{"that":"is all"}`)})
		}
		said <- err
	}()
	bob.Expect(asksBegin)
	for n := range rounds * each {
		if n%each == each/2 { // whatever is on its way then
			c.CutLog(0)
			<-time.After(time.Duration(rand.IntN(500)) * time.Millisecond)
			c.MendEdge(0)
		}
		bob.Expect(fmt.Sprintf(asksMore, n+1))
	}
	bob.Expect(fmt.Sprintf(asksEnd, rounds*each+1))
	if err := await.Recv(t, "all is said", said); err != nil {
		t.Fatal(err)
	}
	bob.Send(whole)
	answers(t, a, `{"request_id":"r","text":"hi"}`)
}

// A log that stays away for longer than the caller is patient ends the request for both, once it is back.
func TestAStreamThatCantGoOnIsAborted(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 1, "bob")
	q := streamed("bob", "r")
	q.Patience = 300 * time.Millisecond
	a := calls(t, c, 0, q)
	hears(bob, 0)
	c.CutLog(0)
	chunk := agora.Message{Part: agora.Chunk, Body: []byte("1")}
	if err := a.Say(t.Context(), chunk); code(err) != agora.Unavailable {
		t.Fatalf("said while the log is away: %v", err)
	}
	if err := a.Say(t.Context(), chunk); code(err) != agora.StreamAborted {
		t.Errorf("said behind what may be missing: %v", err)
	}
	a.Close()
	c.MendEdge(0)
	f := bob.Take("what was said, or that it was given up")
	if f.Type() == "message_chunk" {
		f = bob.Take("that it was given up")
	}
	if d := f.Match(fmt.Sprintf(asksAbort, "STREAM_ABORTED")); d != "" {
		t.Errorf("got %s: %s", f, d)
	}
	bob.ExpectNone(during(time.Second))
}

// Presence forgets everything: a stream whose caller lives continues, and one whose edge has died meanwhile is found in
// the log.
func TestAStreamedRequestSurvivesThatRedisLosesEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(retold)})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, streamed("bob", "r"))
	hears(bob, 0)
	dead := calls(t, c, 2, streamed("bob", "dead"))
	bob.Expect(`{"type":"message","stream_id":"dead"}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.CutEdge(2)
	forget(c)
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	bob.Until("presence is whole again", func() bool { return mark(t, raw) != "" })
	bob.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"anna","stream_id":"dead"}`)
	if _, err := dead.Next(ctx); errors.Is(err, io.EOF) {
		t.Errorf("its answer ends with %v", err)
	}
	says(t, a, 1)
	concludes(t, a)
	bob.Expect(fmt.Sprintf(asksMore, 1), fmt.Sprintf(asksEnd, 2))
	bob.Send(whole)
	answers(t, a, `{"request_id":"r","text":"hi"}`)
}
