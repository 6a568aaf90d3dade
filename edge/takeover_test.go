package edge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

const (
	endless  = 10 * time.Minute // a lease that no test waits out: what comes at all comes before its end
	watchful = 15 * time.Second // of an edge that takes others for gone: soon, when they have left out two of its own renewals
)

func TestAKilledEdgesAgentsAreBackBeforeItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Nodes: 3, Leases: []time.Duration{endless, watchful, 0, endless}})
	sender, _ := registered(t, c, 2, "sender")
	receiver, welcome := registered(t, c, 0, "receiver")
	var last uint64
	killed := []int{0, 3}
	if testing.Short() {
		killed = killed[:1]
	}
	for i, killed := range killed {
		if i > 0 {
			c.AddEdge()
			receiver, welcome = registered(t, c, killed, "receiver", token(welcome), after(last))
		}
		n := 10 * i
		stored(sender, "receiver", n+1)
		last = got(receiver, n+1).Seq()
		c.CutEdge(killed)
		sender.Send(numbered("receiver", n+2), numbered("receiver", n+3))
		receiver, welcome = registered(t, c, 1, "receiver", token(welcome), after(last))
		if welcome.Raw("resumed") != "true" {
			t.Errorf("came back as %s", welcome)
		}
		got(receiver, n+2, n+3)
		sender.Await(fmt.Sprintf(`{"type":"receipt","n":%d}`, n+3))
		for k := n + 4; k <= n+10; k++ {
			stored(sender, "receiver", k)
			last = got(receiver, k).Seq()
		}
	}
}

func TestAnAgentThatIsSentOnByADrainedEdgeMissesNothing(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	sender, _ := registered(t, c, 1, "sender")
	receiver, welcome := registered(t, c, 0, "receiver")
	c.StopEdge(0)
	receiver.Expect(`{"type":"agent.reconnect"}`)
	receiver.ExpectClosed(1012)
	stored(sender, "receiver", 1)
	receiver, _ = registered(t, c, 1, "receiver", token(welcome))
	got(receiver, 1)
}

// A holder that only the log has lost renews its lease: the newcomer waits until it hears of it, however long
// that takes, and nothing that it had in hand is lost.
func TestAHolderThatStillRenewsIsNeverTakenForGone(t *testing.T) {
	t.Parallel()
	const lease = 40 * time.Second // of the newcomer's edge, which judges the holder by it
	const twoRenewals = lease * 2 / 15
	c := start(t, agoratest.Options{Leases: []time.Duration{6 * time.Second, lease}})
	receiver, _ := registered(t, c, 2, "receiver")
	old, welcome := registered(t, c, 0, "a")
	stored(old, "receiver", 1)
	c.CutLog(0)
	old.Send(`{"type":"send","to":"receiver","stream_id":"s","stream":true}`) // can't be stored now, and so not handed over
	old.Barrier()                                                             // the edge has it in hand
	noticed(t, c, 0)
	next := asked(t, c, 1, "a", token(welcome))
	if testing.Short() {
		next.ExpectNone(during(time.Second))
	} else {
		next.ExpectNone(during(twoRenewals + time.Second))
	}
	old.AwaitClosed(4001) // it has learned from presence that it is no longer the holder
	c.MendEdge(0)
	next.Expect(`{"type":"agent.registered","resumed":true}`)
	// Handed over as it was: the plain stream continues, which it would not after a holder that was taken for gone.
	next.Send(`{"type":"send_chunk","to":"receiver","stream_id":"s","chunk":"x"}`, `{"type":"send_end","to":"receiver","stream_id":"s"}`)
	got(receiver, 1)
	receiver.Expect(`{"type":"message","stream_id":"s"}`, `{"type":"message_chunk","chunk":"x"}`, `{"type":"message_end"}`)
}

func TestAnEdgeThatLostTheLogDeliversNothingUntilItHasLookedAfterItsClaims(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	sender, _ := registered(t, c, 1, "sender")
	receiver, _ := registered(t, c, 0, "receiver")
	stored(sender, "receiver", 1)
	got(receiver, 1)
	c.HoldPresence(0, true)
	c.CutLog(0)
	receiver.Until("the log is lost", func() bool { return c.Node(0).Ready() != nil })
	stored(sender, "receiver", 2)
	c.MendEdge(0)
	receiver.Until("the log is back", func() bool { return c.Node(0).Ready() == nil })
	stored(sender, "receiver", 3)
	receiver.ExpectNone(during(300 * time.Millisecond))
	receiver.Send(numbered("sender", 1)) // what it says is taken nevertheless
	c.HoldPresence(0, false)
	receiver.ExpectAll(`{"type":"message","payload":2}`, `{"type":"message","payload":3}`, `{"type":"receipt","n":1}`)
	got(sender, 1)
}

func TestAnEdgeThatWasTakenForGoneDeliversNothingAndClosesItsSockets(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Leases: []time.Duration{endless, watchful}})
	sender, _ := registered(t, c, 2, "sender")
	old, welcome := registered(t, c, 0, "receiver")
	stored(sender, "receiver", 1)
	last := got(old, 1).Seq()
	c.HoldPresence(0, true)
	c.CutLog(0)
	noticed(t, c, 0)
	next, _ := registered(t, c, 1, "receiver", token(welcome), after(last)) // long before the lease's end
	stored(sender, "receiver", 2)
	got(next, 2)
	c.MendEdge(0)
	old.Until("the log is back", func() bool { return c.Node(0).Ready() == nil })
	stored(sender, "receiver", 3)
	old.ExpectNone(during(300 * time.Millisecond))
	c.HoldPresence(0, false)
	old.ExpectClosed(4001)
	got(next, 3)
	next.Barrier()
}

// The newcomer can't ask such a holder, which learns from presence that it is one no more, and hands over there.
func TestAHolderThatTheLogHasLostHandsOverThroughPresence(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Leases: []time.Duration{6 * time.Second}})
	sender, _ := registered(t, c, 2, "sender")
	old, welcome := registered(t, c, 0, "a")
	c.CutLog(0)
	noticed(t, c, 0)
	next := asked(t, c, 1, "a", token(welcome))
	next.Expect(`{"type":"agent.registered","resumed":true}`)
	old.AwaitClosed(4001)
	stored(sender, "a", 1)
	got(next, 1)
}

// Of a stream that was aborted because its holder died, its sender may know nothing. What it says to end it is answered
// nevertheless: it would wait for ever.
func TestACancelOfAStreamThatDiedWithItsEdgeIsAnswered(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Leases: []time.Duration{endless, watchful}})
	receiver, _ := registered(t, c, 2, "receiver")
	sender, welcome := registered(t, c, 0, "sender")
	sender.Send(`{"type":"send","to":"receiver","stream_id":"s","stream":true,"id":"start"}`)
	sender.Expect(`{"type":"receipt","request_id":"start"}`)
	receiver.Expect(`{"type":"message","stream_id":"s"}`)
	c.CutEdge(0)
	noticed(t, c, 0)
	sender, _ = registered(t, c, 1, "sender", token(welcome))
	sender.Send(`{"type":"cancel","to":"receiver","stream_id":"s","id":"cancel"}`)
	sender.Expect(`{"type":"error","code":"STREAM_ABORTED","stream_id":"s","request_id":"cancel"}`)
	receiver.Expect(`{"type":"error","code":"STREAM_ABORTED","stream_id":"s"}`)
}

// An edge that died may have owed the receiver of a stream its end, with presence told already that it had ended. The
// agent's next edge has nothing of that lane in hand, but ends it with the session.
func TestAGoodbyeEndsWhatADeadEdgeOwedAnEnd(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	receiver, _ := registered(t, c, 2, "receiver")
	sender, welcome := registered(t, c, 0, "sender")
	sender.Send(`{"type":"send","to":"receiver","stream_id":"s","stream":true,"id":"start"}`)
	sender.Expect(`{"type":"receipt","request_id":"start"}`)
	receiver.Expect(`{"type":"message","stream_id":"s"}`)
	p := c.Node(2).Config().Presence
	at, err := p.Operators.Inspect(t.Context(), agora.DefaultTenant, "sender")
	if err == nil {
		claim := presence.Claim{Tenant: agora.DefaultTenant, Agent: "sender", Session: at.Session, Epoch: at.Epoch}
		err = p.Lanes.CloseStreams(t.Context(), claim, agora.ToAgent(agora.DefaultTenant, "receiver"), []string{"s"})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.LapseEdge(0)
	sender, _ = registered(t, c, 1, "sender", token(welcome))
	sender.Close(1000)
	receiver.Expect(`{"type":"error","code":"STREAM_ABORTED","stream_id":"s"}`)
}

// shut is a connection that takes note when it is closed, and continues nevertheless, as one does whose socket takes
// nothing.
type shut struct {
	woken
	closed chan edge.Reason
}

func (c shut) Close(r edge.Reason) {
	select {
	case c.closed <- r:
	default:
	}
}

// heldOpen begins a session of b at the first edge by such a connection, and returns what b says to resume it.
func heldOpen(t *testing.T, c *agoratest.Cluster) (b *edge.Session, old shut, resume string) {
	t.Helper()
	old = shut{make(woken, 1), make(chan edge.Reason, 1)}
	b, w, err := actor(t, c, 0).Open(t.Context(), edge.Hello{Card: agora.Agent{ID: "b"}, Conn: "of b"}, old)
	if err != nil {
		t.Fatal(err)
	}
	b.Begin()
	return b, old, `"resume_token":` + agoratest.Quote(w.ResumeToken)
}

// An edge that finds another one in its place gives the agent nothing more, as long as its connection may take to
// close.
func TestADeposedSessionIsGivenNothingMore(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Leases: []time.Duration{6 * time.Second}})
	sender, _ := registered(t, c, 2, "sender")
	b, old, resume := heldOpen(t, c)
	c.CutLog(0)
	noticed(t, c, 0)
	next := asked(t, c, 1, "b", resume)
	if r := await.Recv(t, "the old connection is closed", old.closed); r.Cause != edge.TakenOver {
		t.Errorf("closed for %v", r)
	}
	stored(sender, "b", 1)
	c.MendEdge(0)
	await.True(t, "the old session may be given something, but for that", func() bool {
		ds, err := b.Pull(t.Context(), 1<<10, func() {})
		if len(ds) > 0 {
			t.Fatalf("the old session is given %v", ds)
		}
		return err == nil
	})
	b.Closed(false)
	next.Expect(`{"type":"agent.registered","resumed":true}`)
	got(next, 1)
}

// What a connection has in hand is written before its session is handed over.
func TestAHandOverWaitsForWhatIsBeingWritten(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(b *edge.Session){
		"written":           func(b *edge.Session) { b.Written() },
		"the socket closed": func(b *edge.Session) { b.Closed(false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, agoratest.Options{})
			sender, _ := registered(t, c, 2, "sender")
			b, old, resume := heldOpen(t, c)
			stored(sender, "b", 1)
			await.True(t, "it is given the message", func() bool {
				ds, _ := b.Pull(t.Context(), 1<<10, func() {})
				return len(ds) > 0
			})
			next := asked(t, c, 1, "b", resume)
			await.Recv(t, "the old connection is closed", old.closed)
			next.ExpectNone(during(300 * time.Millisecond))
			ends(b)
			next.Expect(`{"type":"agent.registered","resumed":true}`)
			b.Closed(false)
		})
	}
}
