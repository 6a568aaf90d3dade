package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

// join makes the client a member of a space at a position.
func join(t *testing.T, c *Client, conn *peerConn, seq uint64) *Space {
	t.Helper()
	result := async(func() (*Space, error) { return c.Join(await.Context(t), "general") })
	f := conn.expect("space.join")
	conn.send(wire.Frame{Type: "space.joined", ID: f.ID, Space: "general", Members: []string{"me", "you"}, Seq: seq})
	return result(t)
}

// events takes events one by one.
func events(t *testing.T, s *Space) (next func() *Event) {
	t.Helper()
	all := make(chan *Event)
	ctx := await.Context(t)
	go func() {
		for e, err := range s.Events(ctx) {
			if err != nil {
				return
			}
			select {
			case all <- e:
			case <-ctx.Done():
			}
		}
	}()
	return func() *Event {
		t.Helper()
		return await.Recv(t, "an event", all)
	}
}

func TestEventsComeWholeOrAsTheyAreMade(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	next := events(t, s)
	conn.raw(`{"type":"space.event","space":"general","data":{"from":"you","text":"Hi","n":1.0},"seq":200}`)
	conn.raw(`{"type":"space.event","space":"general","data":{"from":"you","text":"twice"},"seq":200}`)
	conn.raw(`{"type":"space.members","space":"general","members":null,"joined":"you","left":null,"seq":250}`)
	conn.raw(`{"type":"space.members","space":"general","members":["me"],"joined":null,"left":"you","seq":300}`)
	conn.raw(`{"type":"space.event.delta","space":"general","event_id":"e1","data":{"from":"you","text":"a ","x":[1]},"seq":400}`)
	conn.raw(`{"type":"space.event.delta","space":"general","event_id":"e1","data":{"text":"\u00e9"},"seq":500}`)
	e := next()
	if text, err := e.Text(await.Context(t)); text != "Hi" || err != nil || e.From != "you" || string(e.Data) != `{"from":"you","text":"Hi","n":1.0}` {
		t.Fatalf("event %+v, %q, %v", e, text, err)
	}
	if e = next(); e.Roster == nil || e.Roster.Joined != "you" || e.Roster.Members != nil {
		t.Fatalf("event %+v, want that you joined a large space", e)
	}
	if e = next(); e.Roster == nil || e.Roster.Left != "you" || !slices.Equal(s.Members(), []string{"me"}) {
		t.Fatalf("event %+v, members %q", e, s.Members())
	}
	e = next()
	if text, err := e.Next(await.Context(t)); text != "a " || err != nil {
		t.Fatalf("Next = %q, %v", text, err)
	}
	conn.raw(`{"type":"space.event.done","space":"general","event_id":"e1","seq":600}`)
	if text, err := e.Text(await.Context(t)); text != "é" || err != nil {
		t.Fatalf("Text = %q, %v", text, err)
	}
	conn.acked("general", 600)
}

func TestWholeIsTheEventAsPublished(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := events(t, join(t, c, conn, 100))
	conn.raw(`{"type":"space.event.delta","space":"general","event_id":"e1","data":{"from":"you","text":"a\ud83d","x":[1]},"seq":400}`)
	conn.raw(`{"type":"space.event.delta","space":"general","event_id":"e1","data":{"text":"\ude00\/\u00e9\ud83d"},"seq":500}`)
	conn.raw(`{"type":"space.event.done","space":"general","event_id":"e1","seq":600}`)
	if data, err := next().Whole(await.Context(t)); string(data) != `{"from":"you","text":"a\ud83d\ude00\/\u00e9\ud83d","x":[1]}` || err != nil {
		t.Fatalf("Whole = %s, %v", data, err)
	}
}

func TestACancelledEventHasNoNormalEnd(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := events(t, join(t, c, conn, 100))
	conn.raw(`{"type":"space.event.delta","space":"general","event_id":"e1","data":{"from":"you","text":"a"},"seq":400}`)
	conn.raw(`{"type":"space.event.cancel","space":"general","event_id":"e1","seq":500}`)
	if text, err := next().Text(await.Context(t)); text != "a" || !errors.Is(err, ErrCancelled) {
		t.Fatalf("Text = %q, %v", text, err)
	}
}

func TestPublishReturnsWhenStored(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	result := errOf(func() error { return s.PublishText(await.Context(t), "x") })
	f := conn.expect("space.publish")
	if string(f.Data) != `{"text":"x"}` || f.N != 1 {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	conn.send(wire.Frame{Type: "receipt", Space: "general", N: 1, Status: "stored"})
	if err := result(t); err != nil {
		t.Fatal(err)
	}
	result = errOf(func() error { return s.Publish(await.Context(t), nil) })
	f = conn.expect("space.publish")
	conn.send(wire.Frame{Type: "error", Code: "FORBIDDEN", Message: "m", Space: "general", RequestID: f.ID})
	if err := result(t); agora.AsError(err).Code != agora.Forbidden {
		t.Fatalf("Publish = %v, want FORBIDDEN", err)
	}
	if err := s.Publish(await.Context(t), []int{1}); agora.AsError(err).Code != agora.InvalidRequest {
		t.Fatalf("Publish of a list = %v, want INVALID_REQUEST", err)
	}
}

func TestAnErrorThatSpeaksOfASpaceAloneIsAboutNoEvent(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	result := errOf(func() error { return s.PublishText(await.Context(t), "x") })
	f := conn.expect("space.publish")
	conn.send(wire.Frame{Type: "error", Code: "INVALID_REQUEST", Message: "ack: seq 101 was never delivered", Space: "general"})
	conn.send(wire.Frame{Type: "receipt", RequestID: f.ID, Space: "general", N: 1, Status: "stored"})
	if err := result(t); err != nil {
		t.Fatalf("Publish = %v, though it was stored", err)
	}
}

func TestAnEventIsStreamedAcrossAReconnect(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	open := async(func() (*Stream, error) { return s.Stream(await.Context(t), map[string]int{"x": 1}) })
	f := conn.expect("space.publish")
	conn.send(wire.Frame{Type: "space.published", ID: f.ID, Space: "general", EventID: "evt_1"})
	st := open(t)
	conn.send(wire.Frame{Type: "receipt", Space: "general", N: 1, Status: "stored"})
	st.WriteString("a")
	conn.expect("space.publish.delta")
	conn.cut()
	conn = p.accept()
	if f := conn.register(true); f.Positions["general"] != 100 {
		t.Fatalf("positions %v", f.Positions)
	}
	f = conn.next()
	if f.Type == "space.publish" { // its receipt was lost with the connection
		f = conn.next()
	}
	if f.Type != "space.publish.delta" || f.EventID != "evt_1" || f.N != 2 || string(f.Data) != `{"text":"a"}` {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	closed := errOf(st.Close)
	conn.expect("space.publish.done")
	conn.send(wire.Frame{Type: "receipt", Space: "general", N: 3, Status: "stored"})
	if err := closed(t); err != nil {
		t.Fatal(err)
	}
}

func TestCancelOfOwnEventTellsTheEdge(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	open := async(func() (*Stream, error) { return s.Stream(await.Context(t), nil) })
	f := conn.expect("space.publish")
	conn.send(wire.Frame{Type: "space.published", ID: f.ID, Space: "general", EventID: "evt_1"})
	open(t).Cancel()
	f = conn.expect("space.event.cancel")
	if f.EventID != "evt_1" {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	conn.send(wire.Frame{Type: "receipt", RequestID: f.ID, Status: "stored"})
	conn.send(wire.Frame{Type: "receipt", Space: "general", N: 1, Status: "stored"})
	until(t, func() bool { n, _ := c.out.pending(); return n == 0 })
}

func TestANewSessionJoinsAgainWhereItWas(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	next := events(t, s)
	conn.raw(`{"type":"space.event","space":"general","data":{"from":"you"},"seq":200}`)
	next()
	conn.acked("general", 200)
	conn.cut()
	conn = p.accept()
	conn.register(false)
	f := conn.expect("space.join")
	if f.Space != "general" || f.LastSeq != 200 {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	conn.send(wire.Frame{Type: "error", Code: "SPACE_FULL", Message: "m", Space: "general", RequestID: f.ID})
	for _, err := range s.Events(await.Context(t)) {
		if agora.AsError(err).Code != agora.SpaceFull {
			t.Fatalf("Events ended with %v, want SPACE_FULL", err)
		}
	}
}

// A space that can't be entered for the moment, as its log has no leader, is entered when it can be: also where the
// connection is lost meanwhile.
func TestANewSessionJoinsAgainUntilItIsLetIn(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	next := events(t, s)
	conn.cut()
	conn = p.accept()
	conn.register(false)
	rejoined := func() wire.Frame {
		t.Helper()
		f := conn.expect("space.join")
		if f.Space != "general" || f.LastSeq != 100 || !f.HasLastSeq {
			t.Fatalf("client sent %s", f.Append(nil))
		}
		return f
	}
	conn.later(rejoined())
	conn.send(wire.Frame{Type: "error", Code: "RATE_LIMITED", Message: "m", Space: "general", RequestID: rejoined().ID, RetryAfterMS: 60})
	conn.later(rejoined())
	rejoined() // and no answer to it
	conn.cut()
	conn = p.accept()
	conn.register(true)
	conn.later(rejoined())
	f := rejoined()
	conn.send(wire.Frame{Type: "space.joined", ID: f.ID, Space: "general", Members: []string{"me"}, Seq: 100})
	conn.raw(`{"type":"space.event","space":"general","data":{"from":"you"},"seq":200}`)
	if e := next(); e.Seq != 200 {
		t.Fatalf("event %+v, want that at 200", e)
	}
}

// A log that lost what it had gives a stream's parts from the beginning again, or never: who reads it is told.
func TestAStreamEndsWhereTheLogGoesOnBeforeIt(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	next := events(t, s)
	conn.raw(`{"type":"space.event.delta","space":"general","event_id":"e1","data":{"from":"you","text":"a "},"seq":400}`)
	e := next()
	if text, err := e.Next(await.Context(t)); text != "a " || err != nil {
		t.Fatalf("Next = %q, %v", text, err)
	}
	conn.cut()
	conn = p.accept()
	conn.register(false)
	f := conn.expect("space.join")
	conn.send(wire.Frame{Type: "space.joined", ID: f.ID, Space: "general", Members: []string{"me"}, Seq: 50})
	if text, err := e.Next(await.Context(t)); text != "" || agora.AsError(err).Code != agora.StreamAborted {
		t.Fatalf("Next = %q, %v, want STREAM_ABORTED", text, err)
	}
}

func TestAnUnreadSpaceHoldsUpNobodyAndLosesNothing(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{MaxBuffered: 16 << 10})
	s := join(t, c, conn, 100)
	event := func(i uint64) string {
		return fmt.Sprintf(`{"type":"space.event","space":"general","data":{"from":"you","text":%q},"seq":%d}`, strings.Repeat("x", 1<<10), i)
	}
	for i := range uint64(50) {
		conn.raw(event(101 + i))
	}
	messages := receiver(t, c)
	conn.raw(`{"type":"message","from":"you","seq":1}`)
	messages() // comes, although nobody reads the space
	next := events(t, s)
	want := uint64(101)
	take := func() {
		if e := next(); e.Seq != want {
			t.Fatalf("seq %d, want %d", e.Seq, want)
		}
		want++
	}
	var edge sync.WaitGroup
	var over atomic.Bool
	edge.Go(func() { // replays what a join asks for, all of it
		for f := range conn.frames {
			if f.Type != "space.join" {
				continue
			}
			joined := wire.Frame{Type: "space.joined", ID: f.ID, Space: "general", Members: []string{"me"}, Seq: f.LastSeq}
			if err := conn.try(string(joined.Append(nil))); err != nil && !over.Load() {
				t.Errorf("write: %v", err)
			}
			for seq := f.LastSeq + 1; seq <= 150; seq++ {
				if err := conn.try(event(seq)); err != nil && !over.Load() {
					t.Errorf("write: %v", err)
				}
			}
		}
	})
	for want <= 150 {
		take()
	}
	over.Store(true)
	c.Close()
	edge.Wait()
}

func TestLeaveEndsTheEvents(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	left := errOf(func() error { return s.Leave(await.Context(t)) })
	f := conn.expect("space.leave")
	conn.send(wire.Frame{Type: "space.left", ID: f.ID, Space: "general"})
	if err := left(t); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Events(await.Context(t)) {
		if !errors.Is(err, ErrLeft) {
			t.Fatalf("Events ended with %v, want ErrLeft", err)
		}
	}
}

func TestAnswersOfTheDirectory(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	agents := async(func() ([]agora.Agent, error) { return c.Agents(await.Context(t)) })
	conn.cut() // a question survives it
	conn = p.accept()
	conn.register(true)
	f := conn.expect("list")
	conn.raw(fmt.Sprintf(`{"type":"agents","id":%q,"agents":[{"id":"a","name":"A","registered_at":"2026-01-02T03:04:05Z"}]}`, f.ID))
	if got := agents(t); len(got) != 1 || got[0].ID != "a" || got[0].RegisteredAt.Year() != 2026 {
		t.Fatalf("agents %+v", got)
	}
	made := errOf(func() error { return c.CreateSpace(await.Context(t), "x") })
	f = conn.expect("space.create")
	conn.send(wire.Frame{Type: "space.created", ID: f.ID, Space: "x"})
	if err := made(t); err != nil {
		t.Fatal(err)
	}
}
