package edge_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// Anyone who comes back and names the last position it has has thereby acknowledged all up to it, wherever it was given
// that: its senders hear so.
func TestAReceiverThatReturnsHasAcknowledgedWhatItNames(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]struct {
		edge int
		cut  func(c *agoratest.Cluster, to *agoratest.Client)
	}{
		"to the same edge, its socket cut":     {1, func(_ *agoratest.Cluster, to *agoratest.Client) { to.Drop() }},
		"to another edge, its socket cut":      {2, func(_ *agoratest.Cluster, to *agoratest.Client) { to.Drop() }},
		"to the same edge, taking over":        {1, func(*agoratest.Cluster, *agoratest.Client) {}},
		"to another edge, taking over":         {2, func(*agoratest.Cluster, *agoratest.Client) {}},
		"to another edge, its own having died": {2, func(c *agoratest.Cluster, _ *agoratest.Client) { c.CutEdge(1); c.LapseEdge(1) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, agoratest.Options{Node: edge.Config{Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: time.Hour}})
			from, _ := registered(t, c, 0, "from", `"receipts":["acked"]`)
			to, welcome := registered(t, c, 1, "to")
			from.Send(`{"type":"send","id":"m-1","to":"to","payload":1}`,
				`{"type":"send","to":"to","stream_id":"s","stream":true,"index":0,"payload":2}`,
				`{"type":"send_chunk","to":"to","stream_id":"s","index":1,"chunk":"3"}`,
				`{"type":"send","id":"m-4","to":"to","payload":4}`)
			to.Expect(`{"type":"message","payload":1}`, `{"type":"message","payload":2}`)
			last := to.Expect(`{"type":"message_chunk"}`).Seq()
			to.Expect(`{"type":"message","payload":4}`)
			back.cut(c, to)
			to, _ = registered(t, c, back.edge, "to", fmt.Sprintf(`"last_seq":%d`, last), `"resume_token":`+welcome.Raw("resume_token"))
			to.Expect(`{"type":"message","payload":4}`)
			from.Await(`{"type":"receipt","request_id":"m-1","status":"acked"}`)
			from.Await(`{"type":"receipt","stream_id":"s","index":1,"status":"acked"}`)
			for _, f := range from.Pending() {
				if f.Text("request_id") == "m-4" && f.Text("status") == "acked" {
					t.Errorf("got %s of what the receiver has not said to have", f)
				}
			}
		})
	}
}

// What an agent was not given, as it had cancelled the stream, it has not acknowledged with what stands behind it.
func TestNothingOfACancelledStreamIsAcknowledgedByWhoReturns(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: time.Hour}})
	from, _ := registered(t, c, 0, "from", `"receipts":["acked"]`)
	to, welcome := registered(t, c, 1, "to")
	from.Send(`{"type":"send","to":"to","stream_id":"s","stream":true,"index":0,"payload":1}`)
	begins := to.Expect(`{"type":"message","payload":1}`).Seq()
	p := c.Node(1).Config().Presence
	at, err := p.Operators.Inspect(t.Context(), agora.DefaultTenant, "to")
	if err == nil { // as its edge does; that nothing more of it is given to this socket is not what matters
		claim := presence.Claim{Tenant: agora.DefaultTenant, Agent: "to", Session: at.Session, Epoch: at.Epoch}
		err = p.Lanes.Cancel(t.Context(), claim, presence.Stream{Peer: "from", Stream: "s", Seq: begins})
	}
	if err != nil {
		t.Fatal(err)
	}
	from.Send(`{"type":"send_chunk","to":"to","stream_id":"s","index":1,"chunk":"2"}`, `{"type":"send","id":"m","to":"to","payload":3}`)
	to.Expect(`{"type":"message_chunk"}`)
	last := to.Expect(`{"type":"message","payload":3}`).Seq()
	to.Drop()
	registered(t, c, 2, "to", fmt.Sprintf(`"last_seq":%d`, last), `"resume_token":`+welcome.Raw("resume_token"))
	from.Await(`{"type":"receipt","stream_id":"s","index":0,"status":"acked"}`)
	from.Await(`{"type":"receipt","request_id":"m","status":"acked"}`)
	from.ExpectNone(during(500 * time.Millisecond))
}

// An agent may acknowledge what an earlier socket gave it before that comes once more.
func TestWhatIsAcknowledgedBeforeItComesAgainIsTold(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: time.Hour}})
	from, _ := registered(t, c, 0, "from", `"receipts":["acked"]`)
	to, welcome := registered(t, c, 1, "to")
	from.Send(`{"type":"send","id":"m-1","to":"to","payload":1}`)
	last := to.Expect(`{"type":"message","payload":1}`).Seq()
	to.Drop()
	to = asked(t, c, 2, "to", `"resume_token":`+welcome.Raw("resume_token"))
	to.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, last))
	to.Expect(`{"type":"agent.registered"}`)
	from.Await(`{"type":"receipt","request_id":"m-1","status":"acked"}`)
}

// What was acknowledged to an edge that died before it could tell the senders is told by the next one.
func TestAnAcknowledgementOutlivesTheEdgeThatHeardIt(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: time.Hour}})
	from, _ := registered(t, c, 0, "from")
	to, welcome := registered(t, c, 1, "to")
	from.Send(`{"type":"send","to":"to","payload":1}`, `{"type":"send","id":"m-2","to":"to","payload":2,"receipts":["acked"]}`)
	first := to.Expect(`{"type":"message","payload":1}`).Seq()
	last := to.Expect(`{"type":"message","payload":2}`).Seq()
	c.CutLog(1)
	to.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, last))
	await.True(t, "the position is written", func() bool {
		v, err := operator.New(c.Node(0)).InspectAgent(t.Context(), agora.DefaultTenant, "to")
		if err == nil && v.Confirmed >= last {
			t.Fatal("it is written as if the sender had been told")
		}
		return err == nil && v.Confirmed >= first
	})
	c.CutEdge(1)
	c.LapseEdge(1)
	registered(t, c, 2, "to", fmt.Sprintf(`"last_seq":%d`, last), `"resume_token":`+welcome.Raw("resume_token"))
	from.Await(`{"type":"receipt","request_id":"m-2","status":"acked"}`)
}

// acknowledges has an agent at edge 1 get two messages, of which the sender wants to know of the second, and
// acknowledge both while that edge can't tell it so. It returns their positions.
func acknowledges(c *agoratest.Cluster, from, to *agoratest.Client, away func()) (first, last uint64) {
	from.Send(`{"type":"send","to":"to","payload":1}`, `{"type":"send","id":"m-2","to":"to","payload":2,"receipts":["acked"]}`)
	first, last = got(to, 1).Seq(), got(to, 2).Seq()
	away()
	to.Send(fmt.Sprintf(`{"type":"ack","seq":%d}`, last))
	to.Barrier() // an edge that is taken over from reads no more
	return first, last
}

// standing waits until presence has an agent in a state, and returns the position that it has of it.
func standing(t *testing.T, c *agoratest.Cluster, id agora.AgentID, states ...string) (confirmed uint64) {
	t.Helper()
	await.True(t, "the agent stands as it should", func() bool {
		v, err := operator.New(c.Node(0)).InspectAgent(t.Context(), agora.DefaultTenant, id)
		confirmed = v.Confirmed
		return err == nil && slices.Contains(states, v.State)
	})
	return confirmed
}

// A socket that is lost says where its agent stands before its senders are told: should the edge die in between, its
// next one tells them.
func TestWhatWasAcknowledgedToALostSocketOutlivesItsEdge(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: time.Hour}})
	from, _ := registered(t, c, 0, "from")
	to, welcome := registered(t, c, 1, "to")
	first, last := acknowledges(c, from, to, func() { c.CutLog(1) })
	to.Close(1011)
	if at := standing(t, c, "to", "grace"); at < first || at >= last {
		t.Errorf("presence has the agent at %d, want from %d on and before %d: nobody was told of that", at, first, last)
	}
	c.LapseEdge(1)
	registered(t, c, 2, "to", after(last), token(welcome))
	from.Await(`{"type":"receipt","request_id":"m-2","status":"acked"}`)
}

// Once the senders are told, the position is all that was acknowledged: the one who comes next gets nothing of it
// again.
func TestWhatWasAcknowledgedBeforeAnAgentLeftIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, c *agoratest.Cluster, to *agoratest.Client, welcome agoratest.Frame) *agoratest.Client{
		"by a goodbye": func(t *testing.T, c *agoratest.Cluster, to *agoratest.Client, _ agoratest.Frame) *agoratest.Client {
			to.Close(1000)
			standing(t, c, "to", "grace", "ending")
			c.MendEdge(1)
			to, _ = registered(t, c, 2, "to")
			return to
		},
		"as its socket was lost": func(t *testing.T, c *agoratest.Cluster, to *agoratest.Client, welcome agoratest.Frame) *agoratest.Client {
			to.Close(1011)
			standing(t, c, "to", "grace")
			c.MendEdge(1)
			to, _ = registered(t, c, 2, "to", token(welcome))
			return to
		},
		"as another edge took over": func(t *testing.T, c *agoratest.Cluster, to *agoratest.Client, welcome agoratest.Frame) *agoratest.Client {
			next := asked(t, c, 2, "to", token(welcome))
			c.MendEdge(1)
			next.Expect(`{"type":"agent.registered"}`)
			return next
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, agoratest.Options{Node: edge.Config{Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: time.Hour}})
			from, _ := registered(t, c, 0, "from")
			to, welcome := registered(t, c, 1, "to")
			acknowledges(c, from, to, func() { c.CutLog(1) })
			to = leave(t, c, to, welcome)
			from.Await(`{"type":"receipt","request_id":"m-2","status":"acked"}`)
			from.Send(`{"type":"send","to":"to","payload":3}`)
			got(to, 3)
		})
	}
}
