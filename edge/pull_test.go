package edge_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/spaces"
)

// woken is a connection that takes note when its session has something.
type woken chan struct{}

func (c woken) Wake() {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drop forgets a wake.
func (c woken) drop() {
	select {
	case <-c:
	default:
	}
}

func (woken) Notify(edge.Notice) {}
func (woken) Close(edge.Reason)  {}

// Anyone who pulls for many connections is told before it waits for the log, so that others are pulled for meanwhile.
func TestPullSaysSoBeforeItReadsTheLog(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	actor, err := c.Node(0).Authenticate(t.Context(), edge.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	wakes := make(woken, 1)
	b, _, err := actor.Open(t.Context(), edge.Hello{Card: agora.Agent{ID: "b"}, Conn: "of b"}, wakes)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Closed(true)
	b.Begin()
	told := make(chan struct{}, 1)
	reads := func() {
		select {
		case told <- struct{}{}:
		default:
		}
	}
	pull := func() []edge.Delivery {
		got, err := b.Pull(t.Context(), 1<<10, reads)
		if err != nil {
			t.Errorf("pull: %v", err)
		}
		b.Written()
		return got
	}

	c.HoldLog(0, true)
	all := make(chan struct{})
	go func() {
		defer close(all)
		for len(pull()) > 0 {
		}
	}()
	if !await.Within(await.Long, func() bool { return len(told) > 0 }) {
		t.Error("a pull that waits for the log did not say so before")
	}
	c.HoldLog(0, false)
	<-all

	for len(told) > 0 {
		<-told
	}
	a, _ := registered(t, c, 1, "a")
	stored(a, "b", 1)
	for got := pull(); len(got) == 0; got = pull() {
		await.Recv(t, "b is woken", wakes)
	}
	if len(told) > 0 {
		t.Error("a pull of what came live said that it reads the log")
	}
}

// A wake for what could not be read would have the log asked again and again while it is away.
func TestAPullThatFailsWakesNobody(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	a, _ := registered(t, c, 1, "a")
	a.Send(`{"type":"space.join","space":"room"}`, `{"type":"space.publish","space":"room","data":{"text":"x"}}`)
	a.Await(`{"type":"space.event"}`)
	wakes := make(woken, 1)
	b, _, err := actor(t, c, 0).Open(t.Context(), edge.Hello{Card: agora.Agent{ID: "b"}, Conn: "of b"}, wakes)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Closed(true)
	b.Begin()
	pull := func(ctx context.Context) (event bool, err error) {
		defer b.Written()
		got, err := b.Pull(ctx, 1<<10, wakes.drop)
		return slices.ContainsFunc(got, func(d edge.Delivery) bool { return d.Event != nil && d.Event.Kind == agora.Event }), err
	}
	await.True(t, "the mailbox has been read", func() bool {
		_, err := pull(t.Context())
		return err == nil
	})
	if err := b.Do(t.Context(), &edge.Command{Verb: edge.Join, Space: "room", Where: spaces.Where{HasLast: true}}); err != nil {
		t.Fatal(err)
	}
	away, cancel := context.WithCancel(t.Context()) // to the log, by which the space is to be read
	cancel()
	for try := 1; ; try++ {
		_, err := pull(away)
		if code(err) == agora.Unavailable && len(wakes) == 0 {
			break
		}
		if try == 5 { // something else may have waked once
			t.Fatalf("pull %d: %v, and was woken: %t", try, err, len(wakes) > 0)
		}
	}
	await.True(t, "what could not be read comes", func() bool {
		event, _ := pull(t.Context())
		return event
	})
}

// As long as an election may take, a newcomer waits for the log like anyone who speaks.
func TestANewcomerWaitsWhileTheLogDoesNotAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1})
	c.HoldLog(0, true)
	a := asked(t, c, 0, "a")
	a.ExpectNone(during(4 * time.Second)) // one answer of the log has 2 s
	c.HoldLog(0, false)
	a.Expect(`{"type":"agent.registered"}`)
}
