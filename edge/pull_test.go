package edge_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// woken is a connection that takes note when its session has something.
type woken chan struct{}

func (c woken) Wake() {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (woken) Notify(edge.Notice) {}
func (woken) Close(edge.Reason)  {}

// Whoever pulls for many connections is told before it waits for the log, so that others are pulled for meanwhile.
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
