package edge_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// foreign is a question of a dialect whose payloads have no request_id.
func foreign(id string) (q agora.Message) {
	return agora.Message{
		ID: id, To: agora.Address{Agent: "bob"}, Body: []byte(`{"action":"execute"}`), Meta: agora.Meta{Dialect: "other", Head: []byte(`{}`)},
	}
}

func TestRequestsAreNamedBesideTheirPayloads(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	for _, answer := range []struct{ first, second string }{
		{`{"type":"reply","to":"anna","payload":1,"request_id":"r-1"}`, `{"type":"reply","to":"anna","payload":2,"request_id":"r-2"}`},
		{ // what stands beside the payload counts first
			`{"type":"reply","to":"anna","payload":{"request_id":"r-2"},"request_id":"r-1"}`,
			`{"type":"reply","to":"anna","payload":{"request_id":"r-1"},"request_id":"r-2"}`,
		},
		{`{"type":"reply","to":"anna","stream_id":"r-1","payload":1}`, `{"type":"reply","to":"anna","stream_id":"r-2","payload":2}`},
		{ // a stream that is called by no request answers the only one that is left
			`{"type":"reply","to":"anna","stream_id":"r-1","payload":1}`, `{"type":"reply","to":"anna","stream_id":"s-7","payload":2}`,
		},
	} {
		q := question("bob", "r-1")
		q.Message = foreign("r-1")
		a := calls(t, c, 0, q)
		bob.Expect(`{"type":"message","from":"anna","payload":{"action":"execute"},"request_id":"r-1"}`)
		q.Message = foreign("r-2")
		b := calls(t, c, 0, q)
		bob.Expect(`{"type":"message","from":"anna","payload":{"action":"execute"},"request_id":"r-2"}`)
		bob.Send(answer.first)
		m, err := a.Next(await.Context(t))
		if err != nil || m.Meta.Parent != "r-1" {
			t.Fatalf("%s: Next = %+v, %v", answer.first, m, err)
		}
		bob.Send(answer.second)
		m, err = b.Next(await.Context(t))
		if err != nil || m.Stream != "" {
			t.Fatalf("%s: Next = %+v, %v", answer.second, m, err)
		}
		a.Close()
		b.Close()
	}
}

func TestAStreamedReplyMayBeCalledByItsRequest(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	q := question("bob", "r-1")
	q.Message = foreign("r-1")
	a := calls(t, c, 0, q)
	q.Message = foreign("r-2")
	b := calls(t, c, 0, q)
	bob.Expect(`{"type":"message","request_id":"r-1"}`)
	bob.Expect(`{"type":"message","request_id":"r-2"}`)
	bob.Send(
		`{"type":"reply","to":"anna","stream_id":"r-2","stream":true}`, `{"type":"reply_chunk","to":"anna","stream_id":"r-2","chunk":"x"}`,
		`{"type":"reply_end","to":"anna","stream_id":"r-2","payload":{"action":"done"}}`,
		`{"type":"reply","to":"anna","stream_id":"s","stream":true,"request_id":"r-1"}`, `{"type":"reply_end","to":"anna","stream_id":"s"}`,
	)
	answers(t, b, ``, `x`, `{"action":"done"}`)
	answers(t, a, ``, ``)
}

// What crosses from another dialect to a WebSocket, without a call.
func TestMessagesOfOtherDialectsNameTheirRequests(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2})
	bob, _ := registered(t, c, 1, "bob")
	other := caller(t, c, 0)
	for _, q := range []struct {
		m    agora.Message
		want string
	}{
		{foreign("m-1"), `{"type":"message","from":"sub","payload":{"action":"execute"},"request_id":"m-1"}`},
		{agora.Message{Kind: agora.Reply, ID: "m-2", To: agora.Address{Agent: "bob"}, Body: []byte(`7`), Meta: agora.Meta{Parent: "q-1", Dialect: "other", Head: []byte(`{}`)}},
			`{"type":"reply","from":"sub","payload":7,"request_id":"q-1"}`},
		{agora.Message{ID: "m-3", To: agora.Address{Agent: "bob"}, Body: []byte(`8`), Meta: agora.Meta{Request: "r-3"}},
			`{"type":"message","from":"sub","payload":8,"request_id":"r-3"}`},
	} {
		if _, err := other.Do(await.Context(t), "sub", asCommand(edge.Send, q.m)); err != nil {
			t.Fatal(err)
		}
		bob.Expect(q.want)
	}
}

// What an edge tells presence again that has lost everything says nothing of a request that the edge has not stored:
// where it can't store it after all, whoever makes the call again does.
func TestACallThatWasNotAskedWhenRedisLostEverythingIsAskedWhenItIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(retold)})
	bob, _ := registered(t, c, 1, "bob")
	store := c.Node(2).Config().Presence
	known := func() bool {
		open, err := store.Calls.IsOpen(t.Context(), agora.DefaultTenant, call.NewBox(agora.DefaultTenant, "anna", "once"))
		return open && err == nil
	}
	q := question("bob", "r")
	q.Name = "once"
	again := q
	q.Complete = func(context.Context, *agora.Message) error {
		opened := await.Within(await.Long, known)
		forget(c)
		if !opened || !await.Within(await.Long, known) {
			t.Error("presence does not know of the call")
		}
		return agora.Errorf(agora.Unavailable, "not now")
	}
	if _, err := caller(t, c, 0).Call(await.Context(t), "anna", q); agora.AsError(err).Code != agora.Unavailable {
		t.Fatalf("Call = %v, want UNAVAILABLE", err)
	}
	var a *call.Answer
	await.True(t, "the call is made again", func() bool {
		var err error
		a, err = caller(t, c, 2).Call(await.Context(t), "anna", again)
		if err != nil && agora.AsError(err).Code != agora.Unavailable {
			t.Fatal(err)
		}
		return err == nil
	})
	defer a.Close()
	bob.Expect(`{"type":"message","from":"anna"}`)
	bob.Send(whole)
	answers(t, a, `{"request_id":"r","text":"hi"}`)
}

// A call of which nobody knows whether it was asked, as storing its request has failed long ago, is looked for in the
// mailbox: it is asked where it is not there, and not again where it is.
func TestACallThatMayHaveBeenAskedIsLookedForWhenItIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: edge.Config{Doubt: time.Millisecond}})
	bob, _ := registered(t, c, 1, "bob")
	rdb := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer rdb.Close()
	for i, stored := range []bool{false, true} {
		q := question("bob", fmt.Sprint("r", i))
		q.Name = fmt.Sprint("once", i)
		first := q
		begun := time.Now()
		first.Complete = func(context.Context, *agora.Message) error {
			await.True(t, "its time has come", func() bool { return time.Since(begun) > 10*time.Millisecond })
			if stored {
				return nil
			}
			return agora.Errorf(agora.Unavailable, "not now")
		}
		made, err := caller(t, c, 0).Call(await.Context(t), "anna", first)
		if stored != (err == nil) || err != nil && agora.AsError(err).Code != agora.Unavailable {
			t.Fatalf("Call = %v", err)
		}
		if stored {
			defer made.Close()
			bob.Expect(fmt.Sprintf(`{"type":"message","from":"anna","request_id":"r%d"}`, i))
			keys, err := rdb.Keys(t.Context(), "*{c:*"+agora.EncodeToken(call.NewBox(agora.DefaultTenant, "anna", q.Name))+"}:rec").Result()
			if err != nil || len(keys) != 1 || rdb.HDel(t.Context(), keys[0], "asked").Err() != nil {
				t.Fatalf("the call is in presence as %q, %v", keys, err)
			}
		}
		a, err := caller(t, c, 2).Call(await.Context(t), "anna", q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if !stored {
			bob.Expect(fmt.Sprintf(`{"type":"message","from":"anna","request_id":"r%d"}`, i))
		}
		bob.Send(fmt.Sprintf(`{"type":"reply","to":"anna","payload":{"request_id":"r%d"}}`, i))
		answers(t, a, fmt.Sprintf(`{"request_id":"r%d"}`, i))
	}
	if more := bob.Pending(); len(more) > 0 {
		t.Errorf("bob is told %s besides", more)
	}
}

// A caller may go before presence knows of its call, or presence may have lost that. Its call is not given up for that:
// it waits for its caller to come again, as any of a name.
func TestACallThatPresenceDoesNotKnowIsNotGivenUpBeforeItsGraceIsOver(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Grace: time.Hour, Node: leased(retold)})
	bob, _ := registered(t, c, 1, "bob")
	named, other := question("bob", "r"), question("bob", "other")
	named.Name = "once"
	a, err := caller(t, c, 0).Call(await.Context(t), "anna", named)
	if err != nil {
		t.Fatal(err)
	}
	u, err := caller(t, c, 0).Call(await.Context(t), "anna", other)
	if err != nil {
		t.Fatal(err)
	}
	bob.Expect(`{"type":"message","from":"anna","request_id":"r"}`)
	bob.Expect(`{"type":"message","from":"anna","request_id":"other"}`)
	forget(c)
	a.Close()
	u.Close()
	bob.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"anna","request_id":"other"}`) // of what has no name; the other one left before it
	var again *call.Answer
	await.True(t, "the call is made again", func() bool {
		again, err = caller(t, c, 2).Call(await.Context(t), "anna", named)
		if err != nil && agora.AsError(err).Code != agora.Unavailable {
			t.Fatal(err)
		}
		return err == nil
	})
	defer again.Close()
	bob.Send(whole)
	answers(t, again, `{"request_id":"r","text":"hi"}`)
}
