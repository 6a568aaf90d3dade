package edge_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func TestNothingButTheFirstAnswerOfWhoWasAskedIsTheCalls(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	boxed := func(from agora.AgentID, part agora.Part, stream, body string) {
		t.Helper()
		m := to("", part, stream, body)
		m.Kind, m.From, m.To = agora.Reply, from, agora.ToBox(agora.DefaultTenant, a.Box(), "anna")
		if _, err := c.Broker(2).Publish(await.Context(t), fmt.Sprint(from, part, stream), m); err != nil {
			t.Fatal(err)
		}
	}
	boxed("mallory", agora.Whole, "", `"of somebody else"`)
	bob.Send(opened)
	if m, err := a.Next(await.Context(t)); err != nil || m.Part != agora.Start || m.From != "bob" {
		t.Fatalf("Next = %+v, %v; want the start of bob's answer", m, err)
	}
	boxed("bob", agora.Whole, "", `"another one"`)
	boxed("mallory", agora.End, "s", "")
	bob.Send(fmt.Sprintf(chunk, "a"), ended)
	answers(t, a, "a", "")
}

// An edge that could not be reached was given up for dead, with the calls of its callers: they are told, once it is
// back.
func TestACallThatWasGivenUpEndsForWhoStillWaitsForIt(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(8 * time.Second), Leases: []time.Duration{3 * time.Second}})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	c.ParalyseEdge(0)
	bob.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"anna","request_id":"r"}`)
	c.MendEdge(0)
	fails(t, a, agora.StreamAborted)
}

// Who gave its calls up may have come no further than presence, and leaves the rest to the edge once that is back: it
// tells who was asked itself.
func TestACallThatWasGivenUpIsToldByItsOwnEdgeWhereNobodyElseHas(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{MaxAge: 4 * time.Second}}) // a quarter of it is how often presence is told what is open
	bob, _ := registered(t, c, 1, "bob")
	for _, name := range []string{"", "key"} {
		q := question("bob", "r"+name)
		q.Name = name
		a := calls(t, c, 0, q)
		bob.Expect(`{"type":"message","from":"anna"}`)
		given := presence.Leaving{Call: presence.Call{Tenant: agora.DefaultTenant, Box: a.Box()}, Waiter: "*", End: true}
		states, err := c.Node(1).Config().Presence.Calls.Leave(t.Context(), c.Node(0).Holder(), []presence.Leaving{given}, time.Minute, time.Minute)
		if err != nil || states[0] != presence.CallOver {
			t.Fatalf("Leave = %v, %v; want %s", states, err, presence.CallOver)
		}
		fails(t, a, agora.StreamAborted)
		a.Close()
		bob.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"anna","request_id":` + agoratest.Quote("r"+name) + `}`)
	}
	bob.ExpectNone(during(500 * time.Millisecond))
}

// A receipt speaks of all numbers up to its own: what is told stored of a box must be so of what went to a mailbox
// before, though that is slow.
func TestANumberThatGoesIntoABoxWaitsForThoseBeforeIt(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{MaxRecords: 16}})
	doomed := c.AddDoomed(8 * time.Second)
	anna, welcome := registered(t, c, 0, "anna")
	bob, _ := registered(t, c, doomed, "bob")
	calls(t, c, 2, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	anna.Drop()
	n := 0
	numbered := func(frame string) {
		n++
		bob.Send(fmt.Sprintf(`{"to":"anna","n":%d,%s}`, n, frame))
	}
	numbered(`"type":"reply","stream_id":"s","stream":true,"payload":{"request_id":"r"}`)
	for full := false; !full; { // from then on her mailbox takes parts of streams alone, one record at a time
		numbered(`"type":"send","payload":1`)
		full = bob.Await(fmt.Sprintf(`{"n":%d}`, n)).Text("code") == "RATE_LIMITED"
	}
	n-- // it is free
	numbered(`"type":"send","stream_id":"slow","stream":true`)
	for range 10 {
		numbered(`"type":"send_chunk","stream_id":"slow","chunk":"x"`)
	}
	numbered(`"type":"reply_chunk","stream_id":"s","chunk":"x"`)
	bob.Until("what went into the box is stored", func() bool { return bob.Expect(`{"type":"receipt"}`).Uint("n") == uint64(n) })
	c.CutEdge(doomed)
	anna, _ = registered(t, c, 1, "anna", token(welcome))
	for range 10 {
		anna.Await(`{"type":"message_chunk","stream_id":"slow"}`)
	}
}

// Presence may list a call for a while after it was given up: an answer that its agent gives nevertheless goes to the
// mailbox nevertheless.
func TestAnAnswerToACallThatWasGivenUpIsMailThoughItIsStillListed(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	anna, _ := registered(t, c, 0, "anna")
	bob, welcome := registered(t, c, 1, "bob")
	store := c.Node(2).Config().Presence
	edges, err := store.Leases.Edges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := func(a *call.Answer, request string) (seq uint64) { // again, as an edge does that was away when it ended
		t.Helper()
		seq = bob.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"anna","request_id":` + agoratest.Quote(request) + `}`).Seq()
		await.True(t, "the call is over for all", func() bool {
			left, _, err := store.Calls.To(t.Context(), agora.DefaultTenant, "bob")
			return err == nil && !slices.ContainsFunc(left, func(c presence.Call) bool { return c.Box == a.Box() })
		})
		still := presence.Call{Tenant: agora.DefaultTenant, Box: a.Box(), From: "anna", To: "bob", Request: request}
		if _, err := store.Calls.Hold(t.Context(), edges[0], []presence.Waiting{{Call: still}}, time.Hour); err != nil {
			t.Fatal(err)
		}
		return seq
	}
	a := calls(t, c, 0, question("bob", "r1"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	a.Close()
	list(a, "r1")
	bob.Send(`{"type":"reply","to":"anna","payload":{"request_id":"r1"}}`)
	anna.Expect(`{"type":"reply","from":"bob","payload":{"request_id":"r1"}}`)

	a = calls(t, c, 0, question("bob", "r2"))
	last := bob.Expect(`{"type":"message","from":"anna"}`).Seq()
	bob.Drop()
	bob, welcome = registered(t, c, 2, "bob", token(welcome), after(last)) // which was asked elsewhere
	a.Close()
	list(a, "r2")
	bob.Send(`{"type":"reply","to":"anna","payload":{"request_id":"r2"}}`)
	anna.Expect(`{"type":"reply","from":"bob","payload":{"request_id":"r2"}}`)

	a = calls(t, c, 0, question("bob", "r3"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	a.Close()
	last = list(a, "r3")
	bob.Drop()
	bob, _ = registered(t, c, 1, "bob", token(welcome), after(last)) // which was asked, and told, elsewhere
	bob.Send(`{"type":"reply","to":"anna","payload":{"request_id":"r3"}}`)
	anna.Expect(`{"type":"reply","from":"bob","payload":{"request_id":"r3"}}`)
}

// The word that a call is over is in a gap, as its agent's edge could not reach the log while the mailbox overflowed:
// the answer is mail nevertheless, at once.
func TestAnAnswerToACallThatWasGivenUpUnheardIsMail(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{MaxRecords: 4}})
	anna, _ := registered(t, c, 2, "anna")
	bob, _ := registered(t, c, 1, "bob")
	carol, _ := registered(t, c, 0, "carol")
	a := calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	c.CutLog(1)
	a.Close()
	store := c.Node(0).Config().Presence
	await.True(t, "the call is over for all, and bob's mailbox has the word", func() bool {
		left, _, err := store.Calls.To(t.Context(), agora.DefaultTenant, "bob")
		return err == nil && len(left) == 0
	})
	for k := range 8 {
		carol.Send(fmt.Sprintf(`{"type":"send","to":"bob","id":"m%d","payload":%d}`, k, k))
		carol.Expect(fmt.Sprintf(`{"type":"receipt","request_id":"m%d","status":"stored"}`, k))
	}
	c.MendEdge(1)
	bob.Expect(`{"type":"gap"}`)
	bob.Await(`{"type":"message","payload":7}`)
	bob.Send(`{"type":"reply","to":"anna","payload":{"request_id":"r"}}`)
	if f := anna.Expect(`{"type":"reply","from":"bob","payload":{"request_id":"r"}}`); f.Has("redelivered") {
		t.Errorf("the answer came by its box: %s", f)
	}
}

// A stream's name may be used again as soon as its end is said: what begins then answers the next call, though the end
// is not stored yet.
func TestAStreamsNameAnswersOneCallAfterTheOther(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 1, "bob")
	first := calls(t, c, 0, question("bob", "r1"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	second := calls(t, c, 2, question("bob", "r2"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	var frames []string
	for _, request := range []string{"r1", "r2"} {
		frames = append(frames,
			`{"type":"reply","to":"anna","stream_id":"s","stream":true,"payload":{"request_id":"`+request+`"}}`,
			`{"type":"reply_chunk","to":"anna","stream_id":"s","chunk":"`+request+`"}`,
			`{"type":"reply_end","to":"anna","stream_id":"s"}`)
	}
	bob.Send(frames...)
	answers(t, first, `{"request_id":"r1"}`, "r1", ``)
	answers(t, second, `{"request_id":"r2"}`, "r2", ``)
}
