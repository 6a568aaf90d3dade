package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/inbox"
)

func startCluster(t *testing.T) *agoratest.Cluster {
	t.Helper()
	return agoratest.Start(t, agoratest.Options{Edges: 2, Grace: time.Hour, Node: edge.Config{Heartbeat: time.Minute}})
}

func dial(t *testing.T, c *agoratest.Cluster, id string) *client.Client {
	t.Helper()
	a, err := client.Dial(await.Context(t), client.Config{URLs: c.URLs(), Agent: id, Patience: time.Hour, Stall: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// run has an inbox take in what an agent is sent, until stop is called, or the test is over.
func run(t *testing.T, c *agoratest.Cluster, id string, cfg inbox.Config) (b *inbox.Inbox, stop func()) {
	t.Helper()
	a := dial(t, c, id)
	b = inbox.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = b.Run(ctx, a) }) // it ends with ctx
	stop = func() {
		cancel()
		work.Wait()
		a.Close()
	}
	t.Cleanup(stop)
	return b, stop
}

func send(t *testing.T, a *client.Client, to string, payload any) {
	t.Helper()
	if err := a.Send(await.Context(t), to, payload); err != nil {
		t.Fatal(err)
	}
}

// list waits for a number of messages and lists them.
func list(t *testing.T, b *inbox.Inbox, n int) []inbox.Item {
	t.Helper()
	await.True(t, "messages", func() bool { return len(b.Peek()) >= n })
	items, more := b.List(0, 1000)
	if len(items) != n || more != 0 {
		t.Fatalf("%d messages and %d more, want %d", len(items), more, n)
	}
	return items
}

func payloads(items []inbox.Item) (all []string) {
	for _, it := range items {
		all = append(all, string(it.Payload))
	}
	return all
}

func TestWhatIsNotAcknowledgedComesAgain(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	b, stop := run(t, c, "me", inbox.Config{})
	bob := dial(t, c, "bob")
	for i := range 5 {
		send(t, bob, "me", i)
	}
	items := list(t, b, 5)
	if n, left := b.Ack(items[2].Seq); n != 3 || left != 0 {
		t.Fatalf("%d acknowledged, %d left", n, left)
	}
	stop()
	b, _ = run(t, c, "me", inbox.Config{})
	items = list(t, b, 2)
	if got := payloads(items); !slices.Equal(got, []string{"3", "4"}) || !items[0].Redelivered {
		t.Fatalf("got %q, redelivered %v", got, items[0].Redelivered)
	}
}

func TestWhatWasNotShownIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	b, stop := run(t, c, "me", inbox.Config{})
	bob := dial(t, c, "bob")
	for i := range 3 {
		send(t, bob, "me", i)
	}
	await.True(t, "messages", func() bool { return len(b.Peek()) == 3 })
	if items, more := b.List(0, 1); len(items) != 1 || more != 2 {
		t.Fatalf("%d shown, %d more", len(items), more)
	}
	if n, left := b.Ack(1 << 62); n != 1 || left != 2 {
		t.Fatalf("%d acknowledged, %d left", n, left)
	}
	stop()
	b, _ = run(t, c, "me", inbox.Config{})
	if got := payloads(list(t, b, 2)); !slices.Equal(got, []string{"1", "2"}) {
		t.Fatalf("got %q", got)
	}
}

func TestAStreamIsWholeBeforeItIsAcknowledged(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	news := make(chan inbox.Item, 10)
	b, stop := run(t, c, "me", inbox.Config{OnNews: func(it inbox.Item) { news <- it }})
	bob := dial(t, c, "bob")
	s, err := bob.OpenStream(await.Context(t), "me", map[string]any{"a": 1})
	if err != nil {
		t.Fatal(err)
	}
	s.WriteString("one ")
	await.True(t, "text", func() bool { return len(b.Peek()) == 1 && b.Peek()[0].Text == "one " })
	it, _ := b.List(0, 10)
	if n, left := b.Ack(it[0].Seq); n != 0 || left != 1 || !it[0].Streaming {
		t.Fatalf("%d acknowledged, %d left, streaming %v", n, left, it[0].Streaming)
	}
	stop() // its beginning was read, and comes again nevertheless
	b, _ = run(t, c, "me", inbox.Config{OnNews: func(it inbox.Item) { news <- it }})
	s.WriteString("two")
	if err := s.CloseWith(map[string]any{"z": 2}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the end", func() bool { return len(b.Peek()) == 1 && !b.Peek()[0].Streaming })
	got := list(t, b, 1)[0]
	if got.Text != "one two" || string(got.Payload) != `{"a":1}` || string(got.End) != `{"z":2}` || got.Broken != "" {
		t.Fatalf("got %+v", got)
	}
	if told := await.Recv(t, "the news", news); told.Text != "one two" {
		t.Fatalf("told of %+v", told)
	}
	if n, _ := b.Ack(got.Seq); n != 1 {
		t.Fatalf("%d acknowledged", n)
	}
}

func TestAStreamBeyondTheBoundIsGivenUp(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	b, _ := run(t, c, "me", inbox.Config{MaxText: 1000})
	bob := dial(t, c, "bob")
	s, err := bob.OpenStream(await.Context(t), "me", nil)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err = s.WriteString(strings.Repeat("x", 300)); err != nil {
			break
		}
	}
	if !errors.Is(err, client.ErrCancelled) {
		t.Fatalf("its sender got %v", err)
	}
	if it := list(t, b, 1)[0]; it.Streaming || it.Broken == "" || len(it.Text) != 900 {
		t.Fatalf("got %d bytes, streaming %v, broken %q", len(it.Text), it.Streaming, it.Broken)
	}
}

func TestAFullInboxLeavesTheRestInTheCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	b, _ := run(t, c, "me", inbox.Config{MaxMessages: 3})
	bob := dial(t, c, "bob")
	for i := range 10 {
		send(t, bob, "me", i)
	}
	var got []string
	for len(got) < 10 {
		await.True(t, "messages", func() bool { return len(b.Peek()) == min(3, 10-len(got)) })
		if full := b.Full(); full != (10-len(got) >= 3) {
			t.Fatalf("full: %v behind %d", full, len(got))
		}
		items, _ := b.List(0, 10)
		got = append(got, payloads(items)...)
		b.Ack(items[len(items)-1].Seq)
	}
	for i, p := range got {
		if p != fmt.Sprint(i) {
			t.Fatalf("got %q", got)
		}
	}
}

func TestAnAwaitedReplyIsNotListedAndCanBeHadAgain(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	b, stop := run(t, c, "me", inbox.Config{})
	bob := dial(t, c, "bob")
	ctx := await.Context(t)
	if err := bob.Reply(ctx, "me", "q1", map[string]any{"text": "other"}); err != nil {
		t.Fatal(err)
	}
	items := list(t, b, 1)
	if !items[0].IsReply || items[0].RequestID != "q1" {
		t.Fatalf("got %+v", items[0])
	}
	done := make(chan inbox.Item)
	go func() {
		it, _ := b.Await(ctx, "bob", "q2", nil)
		done <- it
	}()
	if err := bob.Reply(ctx, "me", "q2", map[string]any{"text": "two"}); err != nil {
		t.Fatal(err)
	}
	if it := await.Recv(t, "the reply", done); string(it.Payload) != `{"request_id":"q2","text":"two"}` && string(it.Payload) != `{"text":"two","request_id":"q2"}` {
		t.Fatalf("got %s", it.Payload)
	}
	if it, err := b.Await(ctx, "bob", "q2", nil); err != nil || it.RequestID != "q2" {
		t.Fatalf("again: %+v, %v", it, err)
	}
	list(t, b, 1) // q1 alone
	b.AckGiven()
	if it, err := b.Await(ctx, "bob", "q2", nil); err != nil || it.RequestID != "q2" {
		t.Fatalf("acknowledged: %+v, %v", it, err)
	}
	stop() // what stands behind a message that is not acknowledged comes again with it
	b, _ = run(t, c, "me", inbox.Config{})
	if got := list(t, b, 2); got[0].RequestID != "q1" || got[1].RequestID != "q2" || !got[1].Redelivered {
		t.Fatalf("got %+v", got)
	}
}

func TestARequestThatIsGivenUpSaysSo(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	b, _ := run(t, c, "me", inbox.Config{})
	bob := dial(t, c, "bob")
	ctx, cancel := context.WithTimeout(await.Context(t), 3*time.Second)
	defer cancel()
	asked := make(chan error, 1)
	go func() {
		_, err := bob.Request(ctx, "me", map[string]any{"text": "?"})
		asked <- err
	}()
	if it := list(t, b, 1)[0]; it.Deadline.IsZero() {
		t.Fatalf("no deadline: %+v", it)
	}
	if err := await.Recv(t, "the end of the request", asked); err == nil {
		t.Fatal("answered")
	}
	await.True(t, "the news", func() bool { return b.Peek()[0].GivenUp })
}
