package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

// receiver takes messages one by one: each is done with when the next is asked for.
func receiver(t *testing.T, c *Client) (next func() *Message) {
	t.Helper()
	messages, more := make(chan *Message), make(chan struct{}, 1)
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	ctx := await.Context(t)
	go func() {
		for m, err := range c.Messages(ctx) {
			if err != nil {
				return
			}
			select {
			case messages <- m:
			case <-end:
				return
			}
			select {
			case <-more:
			case <-end:
				return
			}
		}
	}()
	first := true
	return func() *Message {
		t.Helper()
		if !first {
			more <- struct{}{}
		}
		first = false
		return await.Recv(t, "a message", messages)
	}
}

func TestMessagesArriveOnceAndInOrder(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"a","payload":{"b": 1.0,"a":2},"seq":256,"n":1,"session":"s"}`)
	conn.raw(`{"type":"message","from":"a","payload":"twice","seq":256,"n":1,"session":"s"}`)
	conn.raw(`{"type":"message","from":"a","payload":"stored twice","seq":512,"n":1,"session":"s","redelivered":true}`)
	conn.raw(`{"type":"message","from":"a","payload":2,"seq":768,"n":2,"session":"s"}`)
	conn.raw(`{"type":"message","from":"a","payload":3,"seq":1024,"n":1,"session":"t"}`)
	conn.raw(`{"type":"message","from":"b","payload":4,"seq":1280}`)
	var got []string
	for range 4 {
		got = append(got, string(next().Payload))
	}
	if want := []string{`{"b": 1.0,"a":2}`, "2", "3", "4"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestAcknowledgesWhatTheApplicationIsDoneWith(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"a","seq":10}`)
	conn.raw(`{"type":"message","from":"a","stream_id":"s","stream":true,"seq":20}`)
	conn.raw(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":"x","seq":30}`)
	conn.raw(`{"type":"message","from":"a","seq":40}`)
	conn.raw(`{"type":"message","from":"a","seq":50}`)
	next()
	streamed := next()
	next()
	next()
	conn.acked("", 10) // of a stream all or nothing
	if text, err := streamed.Next(await.Context(t)); text != "x" || err != nil {
		t.Fatalf("Next = %q, %v", text, err)
	}
	conn.raw(`{"type":"message_end","from":"a","stream_id":"s","seq":60}`)
	conn.acked("", 40)
}

func TestReconnectAsksForWhatIsNotDoneAndDropsWhatCame(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"a","payload":1,"seq":10}`)
	conn.raw(`{"type":"message","from":"a","payload":2,"seq":20}`)
	next()
	next() // the first is done with now
	conn.acked("", 10)
	conn.cut()
	conn = p.accept()
	if f := conn.register(true); !f.HasLastSeq || f.LastSeq != 10 {
		t.Fatalf("last_seq = %d, want 10", f.LastSeq)
	}
	conn.raw(`{"type":"message","from":"a","payload":2,"seq":20,"redelivered":true}`)
	conn.raw(`{"type":"message","from":"a","payload":3,"seq":30}`)
	if m := next(); string(m.Payload) != "3" {
		t.Fatalf("got %s, want 3", m.Payload)
	}
}

func TestNoPositionIsStatedWhileAllMayHaveBeenGivenToAnEarlierRun(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"a","payload":0,"seq":5,"redelivered":true}`)
	conn.raw(`{"type":"message","from":"a","payload":1,"seq":10,"redelivered":true}`)
	next()
	next()
	conn.acked("", 5)
	conn.cut()
	conn = p.accept()
	if f := conn.register(true); f.HasLastSeq { // or the edge would not mark what the earlier run may have had
		t.Fatalf("last_seq = %d", f.LastSeq)
	}
	conn.raw(`{"type":"message","from":"a","payload":1,"seq":10,"redelivered":true}`)
	conn.raw(`{"type":"message","from":"a","payload":2,"seq":20,"redelivered":true}`)
	conn.raw(`{"type":"message","from":"a","payload":3,"seq":30}`)
	for _, want := range []string{"2", "3"} {
		if m := next(); string(m.Payload) != want || m.Redelivered != (want == "2") {
			t.Fatalf("got %s, redelivered %v, want %s", m.Payload, m.Redelivered, want)
		}
	}
	conn.acked("", 20)
	conn.cut()
	if f := p.accept().register(true); !f.HasLastSeq || f.LastSeq != 20 {
		t.Fatalf("last_seq = %d, %v, want 20", f.LastSeq, f.HasLastSeq)
	}
}

func TestStreamsEndAsTheirSenderOrTheClusterEndsThem(t *testing.T) {
	cases := []struct {
		name, end string
		check     func(error) bool
	}{
		{"normally", `{"type":"message_end","from":"a","stream_id":"s","seq":40}`, func(err error) bool { return err == io.EOF }},
		{"cancelled", `{"type":"cancel","from":"a","stream_id":"s","seq":40}`, func(err error) bool { return errors.Is(err, ErrCancelled) }},
		{"aborted", `{"type":"error","code":"STREAM_ABORTED","message":"m","from":"a","stream_id":"s","seq":40}`, func(err error) bool { return agora.AsError(err).Code == agora.StreamAborted }},
		{"out of time", `{"type":"error","code":"TIMEOUT","message":"m","from":"a","stream_id":"s","seq":40}`, func(err error) bool { return agora.AsError(err).Code == agora.Timeout }},
		{"begun anew", `{"type":"message","from":"a","stream_id":"s","stream":true,"seq":40}`, func(err error) bool { return agora.AsError(err).Code == agora.StreamAborted }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := newPeer(t)
			c, conn := dial(t, p, Config{})
			next := receiver(t, c)
			conn.raw(`{"type":"message","from":"a","stream_id":"s","stream":true,"seq":10}`)
			conn.raw(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":" a\n","seq":20}`)
			conn.raw(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":"","seq":30}`)
			conn.raw(tc.end)
			m := next()
			for _, want := range []string{" a\n", ""} {
				if text, err := m.Next(await.Context(t)); text != want || err != nil {
					t.Fatalf("Next = %q, %v, want %q", text, err, want)
				}
			}
			for range 2 {
				if text, err := m.Next(await.Context(t)); text != "" || !tc.check(err) {
					t.Fatalf("Next = %q, %v at the end", text, err)
				}
			}
		})
	}
}

func TestReadGivesTheStreamsBytes(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"a","stream_id":"s","stream":true,"seq":1}`)
	for i, chunk := range []string{`"a\"b"`, `""`, `"\u00e9\ud83d\ude00"`, `"tail"`} {
		conn.raw(fmt.Sprintf(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":%s,"seq":%d}`, chunk, i+2))
	}
	conn.raw(`{"type":"message_end","from":"a","stream_id":"s","seq":9}`)
	b, err := io.ReadAll(next())
	if string(b) != `a"bé😀tail` || err != nil {
		t.Fatalf("read %q, %v", b, err)
	}
}

func TestACharacterCutInTwoIsWholeInTheTextOfAStream(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"a","stream_id":"s","stream":true,"seq":1}`)
	cases := []struct{ chunk, want string }{ // of what is half of nothing, Go has but the replacement character
		{`"a\ud83d"`, "a"}, {`"\ude00b"`, "😀b"}, {`"\ude00\uD83D"`, "\uFFFD"}, {`"c"`, "\uFFFDc"}, {`"\\ud83d"`, `\ud83d`},
		{`"\ud83d"`, ""}, {`""`, ""}, {`"\ud83d"`, "\uFFFD"}, {`"\ude00"`, "😀"}, {`"\udbff"`, ""},
	}
	for i, c := range cases {
		conn.raw(fmt.Sprintf(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":%s,"seq":%d}`, c.chunk, i+2))
	}
	conn.raw(`{"type":"message_end","from":"a","stream_id":"s","seq":90}`)
	m := next()
	for _, c := range cases {
		if text, err := m.Next(await.Context(t)); text != c.want || err != nil {
			t.Fatalf("chunk %s is %q, %v, want %q", c.chunk, text, err, c.want)
		}
	}
	if text, err := m.Next(await.Context(t)); text != "\uFFFD" || err != nil {
		t.Fatalf("the half at the end is %q, %v", text, err)
	}
	if text, err := m.Next(await.Context(t)); text != "" || err != io.EOF {
		t.Fatalf("Next = %q, %v at the end", text, err)
	}
}

func TestCloseOfAMessageCancelsItsStream(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"a","stream_id":"s","stream":true,"seq":1}`)
	m := next()
	m.Close()
	if f := conn.expect("cancel"); f.To != "a" || f.StreamID != "s" || f.N != 1 {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	if _, err := m.Next(await.Context(t)); !errors.Is(err, ErrCancelled) {
		t.Fatalf("Next = %v, want ErrCancelled", err)
	}
	m.Close() // says nothing more
	conn.raw(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":"late","seq":2}`)
	conn.raw(`{"type":"message","from":"a","payload":7,"seq":3}`)
	if got := next(); string(got.Payload) != "7" {
		t.Fatalf("got %s", got.Payload)
	}
}

func TestGapsAreTold(t *testing.T) {
	p := newPeer(t)
	gaps := make(chan Gap, 4)
	c, conn := dial(t, p, Config{LastSeq: 100, OnGap: func(g Gap) { gaps <- g }})
	next := receiver(t, c)
	conn.raw(`{"type":"gap","from_seq":101,"to_seq":500}`)
	conn.raw(`{"type":"gap","from_seq":101,"to_seq":400}`) // known already
	conn.raw(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":"x","seq":600}`)
	conn.raw(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":"y","seq":700}`)
	conn.raw(`{"type":"message","from":"a","seq":800}`)
	next()
	for _, want := range []Gap{{FromSeq: 101, ToSeq: 500}, {From: "a", StreamID: "s"}} {
		if got := <-gaps; got != want {
			t.Fatalf("gap %+v, want %+v", got, want)
		}
	}
	if len(gaps) > 0 {
		t.Fatalf("gap %+v besides", <-gaps)
	}
}

func TestReadingStopsWhileNothingIsTakenAndGoesOnAfter(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{MaxBuffered: 64 << 10})
	const n = 200
	payload := `"` + strings.Repeat("x", 32<<10) + `"`
	written := errOf(func() error {
		for i := range n {
			conn.raw(fmt.Sprintf(`{"type":"message","from":"a","payload":%s,"seq":%d}`, payload, i+1))
		}
		return nil
	})
	full := func() bool {
		c.mail.mu.Lock()
		defer c.mail.mu.Unlock()
		return c.mail.bytes > 64<<10
	}
	until(t, full)
	next := receiver(t, c)
	for i := range n {
		if m := next(); m.Seq != uint64(i+1) {
			t.Fatalf("message %d has seq %d", i, m.Seq)
		}
		c.mail.mu.Lock()
		if c.mail.bytes > 128<<10 {
			t.Fatalf("%d bytes are buffered", c.mail.bytes)
		}
		c.mail.mu.Unlock()
	}
	if err := written(t); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	await.True(t, "what is to come to be", ok)
}

func TestReceiptsComeThroughWhileNothingIsTaken(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{MaxBuffered: 4 << 10})
	payload := `"` + strings.Repeat("x", 1<<10) + `"`
	pending := sendAll(t, c, 1)
	first := conn.expect("send")
	waited := errOf(func() error { return pending[0].Wait(await.Context(t)) })
	until(t, func() bool { return c.sender.waiters.any() })
	for i := range 100 { // far beyond what is kept
		conn.raw(fmt.Sprintf(`{"type":"message","from":"a","payload":%s,"seq":%d}`, payload, i+1))
	}
	conn.stored(first)
	if err := waited(t); err != nil {
		t.Fatal(err)
	}
	next := receiver(t, c)
	last := uint64(0)
	take := func() {
		if m := next(); m.Seq != last+1 {
			t.Fatalf("seq %d after %d", m.Seq, last)
		}
		last++
	}
	fetched := errOf(func() error { // what was dropped is fetched by a new connection
		again := p.accept()
		for i := again.register(true).LastSeq; i < 100; i++ {
			again.raw(fmt.Sprintf(`{"type":"message","from":"a","payload":%s,"seq":%d}`, payload, i+1))
		}
		return nil
	})
	for last < 100 {
		take()
	}
	if err := fetched(t); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnreadStreamHoldsUpTheOthersOnlyForAWhile(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{MaxBuffered: 4 << 10, Stall: 50 * time.Millisecond})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"a","stream_id":"s","stream":true,"seq":1}`)
	m := next()
	chunk := strings.Repeat("x", 1<<10)
	for i := range 10 {
		conn.raw(fmt.Sprintf(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":%q,"seq":%d}`, chunk, i+2))
	}
	conn.raw(`{"type":"message","from":"b","payload":1,"seq":20}`)
	if got := next(); got.From != "b" {
		t.Fatalf("got a message from %s", got.From)
	}
	if f := conn.expect("cancel"); f.To != "a" || f.StreamID != "s" {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	if _, err := m.Text(await.Context(t)); agora.AsError(err).Code != agora.StreamAborted {
		t.Fatalf("Text = %v, want STREAM_ABORTED", err)
	}
}

func TestHandleGivesUpWhatItsFunctionLeavesUnread(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	handled := make(chan string, 2)
	ended := errOf(func() error {
		return c.Handle(t.Context(), func(_ context.Context, m *Message) { handled <- m.From })
	})
	conn.raw(`{"type":"message","from":"a","stream_id":"s","stream":true,"seq":1}`)
	conn.expect("cancel")
	if got := <-handled; got != "a" {
		t.Fatalf("handled a message from %s", got)
	}
	c.Close()
	if err := ended(t); !errors.Is(err, ErrClosed) {
		t.Fatalf("Handle = %v, want ErrClosed", err)
	}
}

func TestStateRemembersPositions(t *testing.T) {
	p := newPeer(t)
	state := &memory{p: Positions{LastSeq: 7, Spaces: map[string]uint64{"old": 3}}}
	result := async(func() (*Client, error) {
		return Dial(await.Context(t), Config{URLs: []string{p.url}, Agent: "me", State: state})
	})
	conn := p.accept()
	if f := conn.register(false); f.LastSeq != 7 {
		t.Fatalf("last_seq = %d, want 7", f.LastSeq)
	}
	c := result(t)
	next := receiver(t, c)
	conn.send(wire.Frame{Type: "message", From: "a", Seq: 9})
	conn.send(wire.Frame{Type: "message", From: "a", Seq: 10})
	next()
	next()
	conn.acked("", 9)
	c.Close()
	if state.p.LastSeq != 9 || state.p.Spaces["old"] != 3 {
		t.Fatalf("saved %+v", state.p)
	}
}
