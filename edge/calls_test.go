package edge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// caller returns an actor at an edge, who may be anybody.
func caller(t *testing.T, c *agoratest.Cluster, k int) *edge.Actor {
	t.Helper()
	a, err := c.Node(k).Authenticate(await.Context(t), edge.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// question asks an agent; the id is the request's.
func question(to agora.AgentID, id string) call.Request {
	return call.Request{Message: agora.Message{
		ID: id, To: agora.Address{Agent: to}, Body: []byte(`{"text":"hello","request_id":` + agoratest.Quote(id) + `}`),
	}}
}

// calls makes a call in the name of "anna".
func calls(t *testing.T, c *agoratest.Cluster, k int, q call.Request) *call.Answer {
	t.Helper()
	a, err := caller(t, c, k).Call(await.Context(t), "anna", q)
	if err != nil {
		t.Fatalf("Call: %v", err)
	}
	t.Cleanup(a.Close)
	return a
}

// parts reads an answer to its end: the bodies of its parts, and the error it ended with, nil for its proper end.
func parts(t *testing.T, a *call.Answer) (bodies []string, err error) {
	t.Helper()
	for {
		m, err := a.Next(await.Context(t))
		if errors.Is(err, io.EOF) {
			return bodies, nil
		}
		if err != nil {
			return bodies, err
		}
		if m.From == "" || m.Kind != agora.Reply {
			t.Fatalf("Next = %+v, want a part of a reply", m)
		}
		bodies = append(bodies, string(m.Body))
	}
}

// answers expects an answer by the bodies of its parts.
func answers(t *testing.T, a *call.Answer, want ...string) {
	t.Helper()
	got, err := parts(t, a)
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("the answer is %q, %v; want %q", got, err, want)
	}
}

// fails expects an answer to end with an error.
func fails(t *testing.T, a *call.Answer, code agora.Code) {
	t.Helper()
	got, err := parts(t, a)
	if err == nil || agora.AsError(err).Code != code {
		t.Fatalf("the answer is %q, %v; want %s", got, err, code)
	}
}

const (
	whole  = `{"type":"reply","to":"anna","payload":{"request_id":"r","text":"hi"}}`
	opened = `{"type":"reply","to":"anna","stream_id":"s","stream":true,"payload":{"request_id":"r"}}`
	chunk  = `{"type":"reply_chunk","to":"anna","stream_id":"s","chunk":"%s"}`
	ended  = `{"type":"reply_end","to":"anna","stream_id":"s"}`
)

func TestACallIsAnsweredFromAnotherEdge(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna","payload":{"text":"hello","request_id":"r"}}`)
	bob.Send(whole)
	answers(t, a, `{"request_id":"r","text":"hi"}`)
	a.Close()

	for range 2 { // under names that were used before
		a = calls(t, c, 0, question("bob", "r"))
		bob.Expect(`{"type":"message","from":"anna"}`)
		bob.Send(opened, fmt.Sprintf(chunk, "a"), fmt.Sprintf(chunk, "b"), ended)
		answers(t, a, `{"request_id":"r"}`, "a", "b", ``)
	}
}

func TestAReplyThatNamesNoRequestAnswersTheOnlyOneOfItsPeer(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(`{"type":"reply","to":"anna","payload":"hi"}`)
	answers(t, a, `"hi"`)
}

func TestACallOfNobodyIsRefused(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 1})
	_, err := caller(t, c, 0).Call(await.Context(t), "anna", question("bob", "r"))
	if err == nil || agora.AsError(err).Code != agora.AgentNotFound {
		t.Fatalf("Call = %v, want AGENT_NOT_FOUND", err)
	}
	if open := c.Node(0).Calls().Open.Load(); open != 0 {
		t.Fatalf("%d calls are open, want 0", open)
	}
}

// Who is to be asked learns of no end of a call whose request it never gets.
func TestACallThatCannotBeAskedIsRefusedAndNobodyIsTold(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	large, late := question("bob", "large"), question("bob", "late")
	large.Message.Body = []byte(`"` + strings.Repeat("x", c.Broker(0).MaxRecord()) + `"`)
	late.Message.Meta.Deadline = c.Broker(0).Now().Add(-time.Second)
	for want, q := range map[agora.Code]call.Request{agora.MessageTooLarge: large, agora.Timeout: late} {
		_, err := caller(t, c, 0).Call(await.Context(t), "anna", q)
		if err == nil || agora.AsError(err).Code != want {
			t.Fatalf("Call = %v, want %s", err, want)
		}
	}
	for range 3 { // each behind what the edge has told of those before it
		a := calls(t, c, 0, question("bob", "r"))
		bob.Expect(`{"type":"message","from":"anna"}`)
		bob.Send(whole)
		answers(t, a, `{"request_id":"r","text":"hi"}`)
		a.Close()
	}
	bob.Barrier()
}

func TestOnlyTheFirstAnswerIsTheCallsAndTheNextGoesToTheMailbox(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	anna, _ := registered(t, c, 0, "anna")
	a := calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(whole, `{"type":"reply","to":"anna","payload":{"request_id":"r","text":"again"}}`)
	answers(t, a, `{"request_id":"r","text":"hi"}`)
	anna.Expect(`{"type":"reply","from":"bob","payload":{"request_id":"r","text":"again"}}`)
}

func TestACallOfANameIsDoneOnceAndAnsweredAtEveryEdge(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{})
	bob, _ := registered(t, c, 2, "bob")
	q := question("bob", "r")
	q.Name = "key"
	var all sync.WaitGroup
	got := make([][]string, 6)
	errs := make([]error, len(got))
	for i := range got {
		who := caller(t, c, i%3)
		all.Go(func() {
			a, err := who.Call(await.Context(t), "anna", q)
			if errs[i] = err; err != nil {
				return
			}
			defer a.Close()
			got[i], errs[i] = parts(t, a)
		})
	}
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(opened, fmt.Sprintf(chunk, "a"), ended)
	all.Wait()
	for i := range got {
		if errs[i] != nil || strings.Join(got[i], " ") != `{"request_id":"r"} a ` {
			t.Errorf("caller %d got %q, %v", i, got[i], errs[i])
		}
	}
	answers(t, calls(t, c, 1, q), `{"request_id":"r"}`, "a", ``)
	bob.ExpectNone(during(200 * time.Millisecond))
	other := question("bob", "other")
	other.Name = "key"
	if _, err := caller(t, c, 1).Call(await.Context(t), "anna", other); err == nil || agora.AsError(err).Code != agora.InvalidRequest {
		t.Fatalf("another request of the name: %v, want INVALID_REQUEST", err)
	}
	if a, err := caller(t, c, 1).Call(await.Context(t), "zoe", q); err != nil {
		t.Fatalf("another caller's name: %v", err)
	} else {
		a.Close()
	}
	bob.Expect(`{"type":"message","from":"zoe"}`)
}

func TestAnAnswerFindsItsCallThoughItsAgentHasMoved(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, welcome := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	last := bob.Expect(`{"type":"message","from":"anna"}`).Seq()
	bob.Drop()
	bob, welcome = registered(t, c, 2, "bob", token(welcome), after(last))
	bob.Send(opened, fmt.Sprintf(chunk, "a"))
	m, err := a.Next(await.Context(t))
	if err != nil || m.Part != agora.Start {
		t.Fatalf("Next = %+v, %v; want the start", m, err)
	}
	if m, err = a.Next(await.Context(t)); err != nil || string(m.Body) != "a" {
		t.Fatalf("Next = %+v, %v; want the chunk", m, err)
	}
	bob.Drop()
	bob, _ = registered(t, c, 1, "bob", token(welcome), after(last))
	bob.Send(fmt.Sprintf(chunk, "b"), ended)
	answers(t, a, "b", ``)
}

func TestAnAnswerSaidAgainAfterAMoveIsStoredOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	anna, _ := registered(t, c, 0, "anna")
	bob, welcome := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	last := bob.Expect(`{"type":"message","from":"anna"}`).Seq()
	reply := `{"type":"reply","to":"anna","n":1,"payload":{"request_id":"r"}}`
	bob.Send(reply)
	bob.Await(`{"type":"receipt","to":"anna","n":1,"status":"stored"}`)
	answers(t, a, `{"request_id":"r"}`)
	a.Close()
	bob.Drop()
	bob, _ = registered(t, c, 2, "bob", token(welcome), after(last))
	bob.Send(reply)
	bob.Await(`{"type":"receipt","to":"anna","n":1,"status":"stored"}`)
	bob.Send(`{"type":"send","to":"anna","n":2,"payload":2}`)
	anna.Expect(`{"type":"message","from":"bob","payload":2}`)
}

func TestReceiptsOfNumbersSpeakOfMailboxesAndBoxesTogether(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	anna, _ := registered(t, c, 0, "anna")
	bob, _ := registered(t, c, 1, "bob")
	first, second := calls(t, c, 0, question("bob", "r1")), calls(t, c, 0, question("bob", "r2"))
	bob.Expect(`{"type":"message","from":"anna"}`, `{"type":"message","from":"anna"}`)
	n := 0
	next := func(frame string) {
		n++
		bob.Send(fmt.Sprintf(`{"to":"anna","n":%d,%s}`, n, frame))
	}
	for _, r := range []string{"r1", "r2"} {
		next(fmt.Sprintf(`"type":"reply","stream_id":%q,"stream":true,"payload":{"request_id":%q}`, r, r))
	}
	for range 5 {
		next(`"type":"send","payload":"by mail"`)
		for _, r := range []string{"r1", "r2"} {
			next(fmt.Sprintf(`"type":"reply_chunk","stream_id":%q,"chunk":"x"`, r))
		}
	}
	for _, r := range []string{"r1", "r2"} {
		next(fmt.Sprintf(`"type":"reply_end","stream_id":%q`, r))
	}
	bob.Await(fmt.Sprintf(`{"type":"receipt","to":"anna","n":%d,"status":"stored"}`, n))
	for _, a := range []*call.Answer{first, second} {
		got, err := parts(t, a)
		if err != nil || len(got) != 7 {
			t.Fatalf("the answer is %q, %v; want 7 parts", got, err)
		}
	}
	for range 5 {
		anna.Expect(`{"type":"message","payload":"by mail"}`)
	}
}

func TestACallerThatGivesUpIsToldToWhoWasAsked(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	anna, _ := registered(t, c, 0, "anna")
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Next = %v, want its context's error", err)
	}
	a.Close()
	bob.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"anna","request_id":"r"}`)
	bob.Send(whole)
	anna.Expect(`{"type":"reply","from":"bob","payload":{"request_id":"r","text":"hi"}}`)

	a = calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(opened)
	if m, err := a.Next(await.Context(t)); err != nil || m.Part != agora.Start {
		t.Fatalf("Next = %+v, %v; want the start", m, err)
	}
	a.Close()
	bob.Expect(`{"type":"cancel","from":"anna","stream_id":"s"}`)
	bob.Send(fmt.Sprintf(chunk, "late"))
	bob.ExpectNone(during(200 * time.Millisecond))
}

func TestADeadlineEndsACallAtBothEnds(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	q := question("bob", "r")
	q.Message.Meta.Deadline = time.Now().Add(3 * time.Second) // which a busy machine does not let pass before it is heard
	a := calls(t, c, 0, q)
	bob.Expect(`{"type":"message","from":"anna"}`)
	fails(t, a, agora.Timeout)
	a.Close()
	bob.Expect(`{"type":"error","code":"TIMEOUT","from":"anna","request_id":"r"}`)
}

func TestAnAgentThatGoesWhileItAnswersAbortsItsAnswer(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2, Grace: 200 * time.Millisecond, Node: leased(2 * time.Second)})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(opened)
	if m, err := a.Next(await.Context(t)); err != nil || m.Part != agora.Start {
		t.Fatalf("Next = %+v, %v; want the start", m, err)
	}
	bob.Drop()
	fails(t, a, agora.StreamAborted)
}

func TestWhatCallersOfADeadEdgeHadAskedIsGivenUpOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(8 * time.Second), Leases: []time.Duration{3 * time.Second}})
	bob, _ := registered(t, c, 1, "bob")
	calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	streams := calls(t, c, 0, question("bob", "r2"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(`{"type":"reply","to":"anna","stream_id":"s","stream":true,"payload":{"request_id":"r2"}}`)
	if m, err := streams.Next(await.Context(t)); err != nil || m.Part != agora.Start {
		t.Fatalf("Next = %+v, %v; want the start", m, err)
	}
	adopted := question("bob", "r3")
	adopted.Name = "key"
	calls(t, c, 0, adopted)
	bob.Expect(`{"type":"message","from":"anna"}`)
	c.CutEdge(0)
	again := calls(t, c, 2, adopted) // its caller comes again elsewhere
	bob.ExpectAll(`{"type":"error","code":"STREAM_ABORTED","from":"anna","request_id":"r"}`, `{"type":"cancel","from":"anna","stream_id":"s"}`)
	bob.ExpectNone(during(time.Second))
	bob.Send(`{"type":"reply","to":"anna","payload":{"request_id":"r3"}}`)
	answers(t, again, `{"request_id":"r3"}`)
}

func TestACallSurvivesThatRedisLosesEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(retold)})
	bob, welcome := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	last := bob.Expect(`{"type":"message","from":"anna"}`).Seq()
	forget(c)
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	bob.Until("presence is whole again", func() bool { return mark(t, raw) != "" })
	bob.Drop()
	bob, _ = registered(t, c, 2, "bob", token(welcome), after(last))
	bob.Send(whole)
	answers(t, a, `{"request_id":"r","text":"hi"}`)
}

func TestCallsBeyondTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 1, Node: edge.Config{Limits: admission.Limits{Calls: 2, EdgeCalls: 3}}})
	registered(t, c, 0, "bob")
	registered(t, c, 0, "carol")
	who := caller(t, c, 0)
	for i, to := range []agora.AgentID{"bob", "bob", "carol"} {
		a, err := who.Call(await.Context(t), agora.AgentID(fmt.Sprint("caller-", i)), question(to, fmt.Sprint(i)))
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		defer a.Close()
	}
	for _, to := range []agora.AgentID{"bob", "carol"} {
		if _, err := who.Call(await.Context(t), "late", question(to, "late")); err == nil || agora.AsError(err).Code != agora.RateLimited {
			t.Fatalf("a call of %s beyond the limit: %v, want RATE_LIMITED", to, err)
		}
	}
}

func TestAnAnswerThatIsNotReadSlowsItsWriterAndIsGivenUpInTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2, Node: edge.Config{ // no pings: who writes and is held back can't answer them
		Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: time.Hour, Limits: admission.Limits{Frame: 3 << 20}, // a slowed answer is stored frame by frame
	}})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, question("bob", "r"))
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(opened)
	bulk := fmt.Sprintf(chunk, strings.Repeat("x", 2<<20))
	var writes sync.WaitGroup
	writes.Go(func() {
		for range 20 {
			bob.Send(bulk)
		}
	})
	bob.Await(`{"type":"error","code":"RATE_LIMITED","stream_id":"s"}`)
	writes.Wait()
	fails(t, a, agora.StreamAborted)
}

func TestEachAnswerToACallerIsReceipted(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	for n := 1; n <= 20; n++ {
		a := calls(t, c, 0, question("bob", "r"))
		bob.Expect(`{"type":"message","from":"anna"}`)
		bob.Send(fmt.Sprintf(`{"type":"reply","to":"anna","n":%d,"payload":{"request_id":"r"}}`, n))
		f := bob.Await(fmt.Sprintf(`{"type":"receipt","to":"anna","n":%d,"status":"stored"}`, n))
		if f.Raw("space") != "" {
			t.Fatalf("the receipt is about space %s", f.Raw("space"))
		}
		answers(t, a, `{"request_id":"r"}`)
		a.Close()
	}
}
