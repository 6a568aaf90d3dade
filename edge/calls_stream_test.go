package edge_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// streamed is a question that continues.
func streamed(to agora.AgentID, id string) call.Request {
	q := question(to, id)
	q.Streams, q.Patience = true, await.Long
	return q
}

// says adds chunks to a request, numbered.
func says(t *testing.T, a *call.Answer, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		if err := a.Say(await.Context(t), agora.Message{Part: agora.Chunk, Body: fmt.Append(nil, n)}); err != nil {
			t.Fatalf("Say %d: %v", n, err)
		}
	}
}

// concludes ends a request.
func concludes(t *testing.T, a *call.Answer) {
	t.Helper()
	if err := a.Say(await.Context(t), agora.Message{Part: agora.End, Body: []byte(`{"that":"is all"}`)}); err != nil {
		t.Fatalf("Say the end: %v", err)
	}
}

// What an agent gets of such a request.
const (
	asksBegin = `{"type":"message","from":"anna","stream":true,"stream_id":"r","request_id":"r","index":0,"payload":{"text":"hello","request_id":"r"}}`
	asksMore  = `{"type":"message_chunk","from":"anna","stream_id":"r","index":%d,"chunk":"%[1]d"}`
	asksEnd   = `{"type":"message_end","from":"anna","stream_id":"r","index":%d,"payload":{"that":"is all"}}`
	asksAbort = `{"type":"error","code":"%s","message":"<any>","from":"anna","stream_id":"r"}`
)

// hears expects the beginning of a request, and as many chunks.
func hears(bob *agoratest.Client, chunks int) agoratest.Frame {
	f := bob.Expect(asksBegin)
	for n := range chunks {
		f = bob.Expect(fmt.Sprintf(asksMore, n+1))
	}
	return f
}

func TestARequestThatIsAStreamIsLikeAnyOther(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 1, "bob")
	for about, reply := range map[string][]string{
		"whole, by its name":   {whole},
		"whole, in a stream's": {`{"type":"reply","to":"anna","stream_id":"r","payload":"hi"}`},
		"a stream":             {opened, fmt.Sprintf(chunk, "a"), ended},
		"a stream of its name": {
			`{"type":"reply","to":"anna","stream_id":"r","stream":true,"payload":{}}`, `{"type":"reply_chunk","to":"anna","stream_id":"r","chunk":"a"}`,
			`{"type":"reply_end","to":"anna","stream_id":"r"}`,
		},
	} {
		a := calls(t, c, 0, streamed("bob", "r"))
		says(t, a, 1, 2)
		hears(bob, 2)
		bob.Send(reply...) // before it has heard all
		got, err := parts(t, a)
		if want := len(reply); err != nil || len(got) != want {
			t.Errorf("the answer, %s, is %q, %v; want %d parts", about, got, err, want)
		}
		says(t, a, 3)
		concludes(t, a)
		bob.Expect(fmt.Sprintf(asksMore, 3), fmt.Sprintf(asksEnd, 4))
		for _, m := range []agora.Message{{Part: agora.Chunk}, {Part: agora.End}} {
			if err := a.Say(await.Context(t), m); code(err) != agora.InvalidRequest {
				t.Errorf("behind its end: %v", err)
			}
		}
		a.Close()
	}
	bob.ExpectNone(during(500 * time.Millisecond))
}

func TestARequestOfAStreamThatMovesWithItsReader(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, welcome := registered(t, c, 1, "bob")
	a := calls(t, c, 0, streamed("bob", "r"))
	says(t, a, 1)
	last := hears(bob, 1).Seq()
	bob.Drop()
	says(t, a, 2)
	bob, welcome = registered(t, c, 2, "bob", token(welcome), after(last))
	says(t, a, 3)
	last = bob.Expect(fmt.Sprintf(asksMore, 2), fmt.Sprintf(asksMore, 3)).Seq()
	bob.Send(opened, fmt.Sprintf(chunk, "a"))
	for range 2 {
		if _, err := a.Next(await.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	bob.Drop()
	concludes(t, a)
	bob, _ = registered(t, c, 1, "bob", token(welcome), after(last))
	bob.Expect(fmt.Sprintf(asksEnd, 4))
	bob.Send(ended)
	answers(t, a, ``)
	a.Close()
	bob.ExpectNone(during(500 * time.Millisecond))
}

func TestWhatIsNoStreamHasNoParts(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1})
	registered(t, c, 0, "bob")
	named := streamed("bob", "r")
	named.Name = "key"
	if _, err := caller(t, c, 0).Call(await.Context(t), "anna", named); code(err) != agora.InvalidRequest {
		t.Errorf("a stream with a name: %v", err)
	}
	a := calls(t, c, 0, question("bob", "r"))
	if err := a.Say(t.Context(), agora.Message{Part: agora.Chunk}); code(err) != agora.InvalidRequest {
		t.Errorf("a part of what is whole: %v", err)
	}
	a = calls(t, c, 0, streamed("bob", "s"))
	for _, part := range []agora.Part{agora.Whole, agora.Start, agora.Cancel, agora.Abort} {
		if err := a.Say(t.Context(), agora.Message{Part: part}); code(err) != agora.InvalidRequest {
			t.Errorf("part %d: %v", part, err)
		}
	}
	if open := c.Node(0).Calls().Open.Load(); open != 2 {
		t.Errorf("%d calls are open, want 2", open)
	}
}

// Anyone who goes before the end of its request has it aborted, and the answer cancelled; behind its end it is as with
// any call.
func TestACallerThatGoesAbortsItsStreamOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 1, "bob")
	a := calls(t, c, 0, streamed("bob", "r"))
	says(t, a, 1)
	hears(bob, 1)
	a.Close()
	bob.Expect(fmt.Sprintf(asksAbort, "STREAM_ABORTED"))
	if err := a.Say(t.Context(), agora.Message{Part: agora.End}); code(err) != agora.StreamAborted {
		t.Errorf("said when it is closed: %v", err)
	}
	bob.ExpectNone(during(500 * time.Millisecond))

	a = calls(t, c, 0, streamed("bob", "r"))
	hears(bob, 0)
	bob.Send(opened)
	if m, err := a.Next(await.Context(t)); err != nil || m.Part != agora.Start {
		t.Fatalf("Next = %+v, %v; want the start", m, err)
	}
	a.Close()
	bob.Expect(fmt.Sprintf(asksAbort, "STREAM_ABORTED"), `{"type":"cancel","from":"anna","stream_id":"s"}`)
	bob.ExpectNone(during(500 * time.Millisecond))

	a = calls(t, c, 0, streamed("bob", "r")) // answered, and not said to its end
	hears(bob, 0)
	bob.Send(whole)
	answers(t, a, `{"request_id":"r","text":"hi"}`)
	a.Close()
	bob.Expect(fmt.Sprintf(asksAbort, "STREAM_ABORTED"))
	bob.ExpectNone(during(500 * time.Millisecond))

	a = calls(t, c, 0, streamed("bob", "r"))
	hears(bob, 0)
	concludes(t, a)
	a.Close()
	bob.Expect(fmt.Sprintf(asksEnd, 1), `{"type":"error","code":"STREAM_ABORTED","from":"anna","request_id":"r"}`)
	bob.ExpectNone(during(500 * time.Millisecond))
}

func TestADeadlineAbortsARequestThatIsAStream(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	for _, how := range []string{"as it is read", "as it is said"} {
		q := streamed("bob", "r")
		q.Within = 3 * time.Second
		a := calls(t, c, 0, q)
		says(t, a, 1)
		hears(bob, 1)
		if how == "as it is read" {
			fails(t, a, agora.Timeout)
		} else {
			await.True(t, "it is said no more", func() bool {
				return code(a.Say(t.Context(), agora.Message{Part: agora.Chunk, Body: []byte(`"more"`)})) == agora.Timeout
			})
		}
		a.Close()
		bob.Await(fmt.Sprintf(asksAbort, "TIMEOUT"))
		bob.ExpectNone(during(500 * time.Millisecond))
	}
}

// The agent wants no more of it, here or where its session continues: the caller is told, and no more comes.
func TestAReceiverThatCancelsIsHeardByTheCaller(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Grace: time.Minute})
	bob, welcome := registered(t, c, 1, "bob")
	anna, _ := registered(t, c, 2, "anna")
	for _, how := range []string{"here", "with its answer", "elsewhere"} {
		a := calls(t, c, 0, streamed("bob", "r"))
		says(t, a, 1)
		last := hears(bob, 1).Seq()
		switch how {
		case "with its answer":
			bob.Send(`{"type":"reply","to":"anna","stream_id":"r","stream":true,"payload":{}}`)
		case "elsewhere":
			bob.Drop()
			bob, welcome = registered(t, c, 2, "bob", token(welcome), after(last))
		}
		cancels(t, bob, a)
		if err := a.Say(t.Context(), agora.Message{Part: agora.Chunk, Body: []byte("2")}); code(err) != agora.StreamAborted {
			t.Errorf("cancelled %s, it is said: %v", how, err)
		}
		a.Close()
		isOver(t, c, a)
		bob.ExpectNone(during(500 * time.Millisecond))
	}
	if left := anna.Pending(); len(left) > 0 {
		t.Errorf("the mailbox of the caller got %q", left)
	}
	a := calls(t, c, 0, streamed("bob", "r")) // another one of its name is whole
	says(t, a, 1)
	hears(bob, 1)
	concludes(t, a)
	bob.Expect(fmt.Sprintf(asksEnd, 2))
	bob.Send(whole)
	answers(t, a, `{"request_id":"r","text":"hi"}`)
}

// cancels has an agent cancel a request, and waits until its caller is told.
func cancels(t *testing.T, bob *agoratest.Client, a *call.Answer) {
	t.Helper()
	bob.Send(`{"type":"cancel","id":"c","to":"anna","stream_id":"r"}`)
	bob.Expect(`{"type":"receipt","request_id":"c","status":"stored"}`)
	fails(t, a, agora.StreamAborted)
}

// isOver waits until a call is not open any more: then the end of its request is in the log.
func isOver(t *testing.T, c *agoratest.Cluster, a *call.Answer) {
	t.Helper()
	store := knows(t, c)
	await.True(t, "the call is over", func() bool {
		open, err := store.Calls.IsOpen(t.Context(), agora.DefaultTenant, a.Box())
		return err == nil && !open
	})
}

// knows returns what a cluster's presence has.
func knows(t *testing.T, c *agoratest.Cluster) *presence.Store {
	t.Helper()
	client, err := presence.Dial("redis://" + c.Redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	store := presence.New(presence.Config{Client: client})
	t.Cleanup(func() { store.Close() })
	return store
}

// An agent has cancelled a request, and the end of that comes behind the start of the next one of its name: it is not
// that one's.
func TestTheLateEndOfARequestIsNotThatOfTheNextOne(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 1, "bob")
	first := calls(t, c, 0, streamed("bob", "r"))
	says(t, first, 1)
	hears(bob, 1)
	cancels(t, bob, first)
	c.HoldLog(0, true)
	first.Close()
	second := calls(t, c, 2, streamed("bob", "r"))
	says(t, second, 1)
	hears(bob, 1)
	c.HoldLog(0, false)
	isOver(t, c, first)
	says(t, second, 2)
	bob.Expect(fmt.Sprintf(asksMore, 2))
	cancels(t, bob, second)
	second.Close()
	isOver(t, c, second)
	bob.ExpectNone(during(500 * time.Millisecond))
}

func TestAFullMailboxHoldsTheWriterBack(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2, Grace: time.Hour, Node: edge.Config{MaxRecords: 256}})
	bob, welcome := registered(t, c, 1, "bob")
	q := streamed("bob", "r")
	q.Patience = 2 * time.Second
	a := calls(t, c, 0, q)
	last := hears(bob, 0).Seq()
	bob.Drop()
	n := 1
	next := func() error {
		err := a.Say(await.Context(t), agora.Message{Part: agora.Chunk, Body: fmt.Append(nil, n)})
		if err == nil {
			n++
		}
		return err
	}
	await.True(t, "no more is taken", func() bool {
		err := next()
		if err != nil && code(err) != agora.RateLimited {
			t.Fatal(err)
		}
		return err != nil
	})
	if n > 256 {
		t.Fatalf("%d parts were taken by a mailbox of 256", n)
	}
	bob, _ = registered(t, c, 1, "bob", token(welcome), after(last))
	for k := 1; k < n; k++ {
		bob.Expect(fmt.Sprintf(asksMore, k))
	}
	was := n
	await.True(t, "it goes on", func() bool { return next() == nil })
	bob.Expect(fmt.Sprintf(asksMore, was))
	concludes(t, a)
	bob.Expect(fmt.Sprintf(asksEnd, n))
}

// Callers go at any moment while they say the end: each stream has one end, be it that or an abort.
func TestAStreamHasOneEndWheneverItsCallerGoes(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	bob, _ := registered(t, c, 1, "bob")
	const streams = 60
	var all sync.WaitGroup
	said := make([]bool, streams)
	for i := range streams {
		who := caller(t, c, i%3)
		all.Go(func() {
			a, err := who.Call(await.Context(t), "anna", streamed("bob", fmt.Sprint(i)))
			if err != nil {
				t.Errorf("call %d: %v", i, err)
				return
			}
			var closing sync.WaitGroup
			closing.Go(func() {
				<-time.After(time.Duration(rand.IntN(5000)) * time.Microsecond)
				a.Close()
			})
			if err = a.Say(t.Context(), agora.Message{Part: agora.Chunk, Body: []byte("1")}); err == nil {
				err = a.Say(t.Context(), agora.Message{Part: agora.End})
			}
			said[i] = err == nil
			closing.Wait()
		})
	}
	all.Wait()
	ends := map[string]string{}
	await.True(t, "all have ended", func() bool {
		for {
			f, ok := bob.Next(10 * time.Millisecond)
			if !ok {
				return len(ends) == streams
			}
			id := f.Text("stream_id")
			if old := ends[id]; old != "" {
				t.Fatalf("behind %s of stream %s came %s", old, id, f)
			}
			if f.Type() == "message_end" || f.Type() == "error" && id != "" {
				ends[id] = f.Type()
			}
		}
	})
	for i := range streams {
		if id := fmt.Sprint(i); said[i] && ends[id] != "message_end" {
			t.Errorf("stream %s, whose end is said to be stored, ended with %q", id, ends[id])
		}
	}
}

// The parts count against the rate of who says them, and wait for it.
func TestAStreamedRequestWaitsForItsCallersRate(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1, Node: edge.Config{Limits: admission.Limits{Rate: 0.01, Burst: 300}}}) // three messages
	bob, _ := registered(t, c, 0, "bob")
	a := calls(t, c, 0, streamed("bob", "r"))
	says(t, a, 1, 2, 3)
	hears(bob, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := a.Say(ctx, agora.Message{Part: agora.Chunk, Body: []byte("4")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("said beyond its rate: %v", err)
	}
	c.Node(0).SetLimits(admission.Limits{})
	says(t, a, 4) // it was not said before
	bob.Expect(fmt.Sprintf(asksMore, 4))
}
