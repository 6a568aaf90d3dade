package edge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// begun makes a call of bob under a name and reads the start of its answer.
func begun(t *testing.T, c *agoratest.Cluster, k int, bob *agoratest.Client) (leave func()) {
	t.Helper()
	q := question("bob", "r")
	q.Name = "key"
	a := calls(t, c, k, q)
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(opened, fmt.Sprintf(chunk, "a"))
	if m, err := a.Next(await.Context(t)); err != nil || m.Part != agora.Start {
		t.Fatalf("Next = %+v, %v; want the start", m, err)
	}
	return a.Close
}

func TestACallOfANameWaitsForItsCallerWhoHearsItAgainFromTheBeginning(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{}) // the grace is a minute
	bob, _ := registered(t, c, 1, "bob")
	begun(t, c, 0, bob)()
	bob.ExpectNone(during(500 * time.Millisecond))
	bob.Send(fmt.Sprintf(chunk, "b"))
	q := question("bob", "r")
	q.Name = "key"
	a := calls(t, c, 2, q)
	bob.Send(ended)
	answers(t, a, `{"request_id":"r"}`, "a", "b", ``)
	a.Close()
	answers(t, calls(t, c, 1, q), `{"request_id":"r"}`, "a", "b", ``)
	bob.ExpectNone(during(200 * time.Millisecond))
}

func TestACallOfANameEndsOnceWithTheGraceOfItsCaller(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Grace: 2 * time.Second})
	bob, _ := registered(t, c, 1, "bob")
	begun(t, c, 0, bob)()
	bob.Expect(`{"type":"cancel","from":"anna","stream_id":"s"}`)
	q := question("bob", "r")
	q.Name = "key"
	if _, err := caller(t, c, 2).Call(await.Context(t), "anna", q); code(err) != agora.StreamAborted {
		t.Fatalf("made again after its grace: %v, want STREAM_ABORTED", err)
	}
	bob.ExpectNone(during(500 * time.Millisecond))
}

// isAnsweredInVain has bob answer anna's call, which its caller leaves without having taken the answer: it comes by her
// mailbox, once.
func isAnsweredInVain(anna, bob *agoratest.Client, a *call.Answer) {
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(`{"type":"reply","to":"anna","id":"i","payload":{"request_id":"r","text":"hi"}}`)
	bob.Await(`{"type":"receipt","request_id":"i","status":"stored"}`)
	a.Close()
	anna.Expect(`{"type":"reply","from":"bob","redelivered":true,"payload":{"request_id":"r","text":"hi"}}`)
	anna.ExpectNone(during(500 * time.Millisecond))
}

func TestAnAnswerThatCameButWasNotTakenGoesToItsCallersMailboxOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	anna, _ := registered(t, c, 2, "anna")
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	isAnsweredInVain(anna, bob, a)
	bob.ExpectNone(during(500 * time.Millisecond)) // it has answered: it has nothing to stop

	// The same where its caller's edge has died with it.
	dead := c.AddDoomed(3 * time.Second)
	calls(t, c, dead, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	c.HoldLog(dead, true) // nobody there reads the answer, or drops it
	c.CutEdge(dead)
	bob.Send(`{"type":"reply","to":"anna","id":"j","payload":{"request_id":"r","text":"ho"}}`)
	bob.Await(`{"type":"receipt","request_id":"j","status":"stored"}`)
	anna.Expect(`{"type":"reply","from":"bob","redelivered":true,"payload":{"request_id":"r","text":"ho"}}`)
	anna.ExpectNone(during(500 * time.Millisecond))
}

// An answer is on its way when its call is given up, and the edge that has given it up is gone before the answer comes.
func TestAnAnswerThatComesWhenTheEdgeThatGaveItsCallUpIsDeadGoesToItsCallersMailboxOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	dead := c.AddDoomed(3 * time.Second)
	store := knows(t, c)
	anna, _ := registered(t, c, 2, "anna")
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, dead, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	c.HoldLog(1, true)
	bob.Send(`{"type":"reply","to":"anna","id":"i","payload":{"request_id":"r","text":"hi"}}`, `{"type":"agents.find","id":"l","skill":"none"}`)
	bob.Expect(`{"type":"agents.found","id":"l"}`) // the reply was read
	a.Close()
	await.True(t, "the call is over for all", func() bool {
		left, _, err := store.Calls.To(t.Context(), agora.DefaultTenant, "bob")
		return err == nil && len(left) == 0
	})
	c.CutEdge(dead)
	c.HoldLog(1, false)
	bob.Await(`{"type":"receipt","request_id":"i","status":"stored"}`)
	anna.Expect(`{"type":"reply","from":"bob","redelivered":true,"payload":{"request_id":"r","text":"hi"}}`)
	anna.ExpectNone(during(500 * time.Millisecond))
}

// An answer was not taken, and presence can't tell at first whether its caller has a mailbox.
func TestAnAnswerIsNotDroppedWhilePresenceCantTellWhoseItIs(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	anna, _ := registered(t, c, 1, "anna")
	bob, _ := registered(t, c, 1, "bob")
	away := agora.Errorf(agora.Unavailable, "presence can't be reached")
	r := registry(t, c, func() (bool, error) {
		if away == nil {
			return true, nil
		}
		err := away
		away = nil
		return false, err
	})
	a := asks(t, r, "r", "")
	isAnsweredInVain(anna, bob, a)
}
