package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

func TestRequestPutsItsIDIntoThePayloadAndMatchesTheReply(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	result := async(func() (*Message, error) { return c.Request(await.Context(t), "you", raw(`{ "q": 1 }`)) })
	f := conn.expect("send")
	id, _ := member(f.Payload, "request_id")
	if want := fmt.Sprintf(`{"request_id":%s, "q": 1 }`, id); string(f.Payload) != want || f.DeadlineMS <= 0 {
		t.Fatalf("client sent %s, want payload %s and a deadline", f.Append(nil), want)
	}
	conn.stored(f)
	conn.raw(`{"type":"reply","from":"you","payload":{"request_id":"another"},"seq":1}`)
	conn.raw(fmt.Sprintf(`{"type":"reply","from":"you","payload":{"a":1,"request_id":%s},"seq":2}`, id))
	if m := result(t); m.Seq != 2 || !m.IsReply {
		t.Fatalf("reply %+v", m)
	}
	if m := next(); m.Seq != 1 {
		t.Fatalf("message %+v", m)
	}
}

func TestOnlyTheOneThatWasAskedAnswers(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	result := async(func() (*Message, error) { return c.Request(ctx, "you", nil) })
	f := conn.expect("send")
	id, _ := member(f.Payload, "request_id")
	conn.stored(f)
	conn.raw(fmt.Sprintf(`{"type":"reply","from":"mallory","payload":{"request_id":%s},"seq":1}`, id))
	conn.raw(fmt.Sprintf(`{"type":"error","code":"TIMEOUT","message":"of a request of hers","from":"mallory","request_id":%s,"seq":2}`, id))
	conn.raw(fmt.Sprintf(`{"type":"message","from":"you","payload":{"request_id":%s},"seq":3}`, id))
	for _, from := range []string{"mallory", "you"} { // neither is lost, and neither is the answer
		if m := next(); m.From != from || m.RequestID() == "" || m.IsReply != (from == "mallory") {
			t.Fatalf("message %+v, want one from %s", m, from)
		}
	}
	conn.raw(fmt.Sprintf(`{"type":"reply","from":"you","payload":{"request_id":%s},"seq":4}`, id))
	if m := result(t); m.Seq != 4 || m.From != "you" {
		t.Fatalf("reply %+v", m)
	}
}

func TestAReplyFromAnotherThanTheOneGivenUpOnIsAMessage(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	ctx, cancel := context.WithCancel(await.Context(t))
	given := errOf(func() error { _, err := c.Request(ctx, "you", nil); return err })
	f := conn.expect("send")
	cancel()
	if err := given(t); !errors.Is(err, context.Canceled) {
		t.Fatalf("Request = %v, want its context's error", err)
	}
	conn.send(wire.Frame{Type: "reply", From: "you", Payload: f.Payload, Seq: 1})
	conn.send(wire.Frame{Type: "reply", From: "mallory", StreamID: "s", Stream: true, Payload: f.Payload, Seq: 2})
	conn.raw(`{"type":"reply_chunk","from":"mallory","stream_id":"s","chunk":"hm","seq":3}`)
	conn.raw(`{"type":"reply_end","from":"mallory","stream_id":"s","seq":4}`)
	m := next()
	if text, err := m.Text(await.Context(t)); m.From != "mallory" || text != "hm" || err != nil {
		t.Fatalf("message %+v with %q, %v", m, text, err)
	}
}

func TestRequestSurvivesAReconnect(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	result := async(func() (*Message, error) { return c.Request(await.Context(t), "you", nil) })
	first := conn.expect("send")
	conn.cut()
	conn = p.accept()
	conn.register(true)
	again := conn.expect("send")
	if string(again.Payload) != string(first.Payload) || again.N != first.N {
		t.Fatalf("sent again as %s", again.Append(nil))
	}
	conn.stored(again)
	conn.send(wire.Frame{Type: "reply", From: "you", Payload: first.Payload, Seq: 3})
	if m := result(t); m.Seq != 3 {
		t.Fatalf("reply %+v", m)
	}
}

func TestStreamedReplyIsReadAsItComes(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	result := async(func() (*Message, error) { return c.Request(ctx, "you", nil) })
	f := conn.expect("send")
	conn.send(wire.Frame{Type: "reply", From: "you", StreamID: "s", Stream: true, Payload: f.Payload, Seq: 1})
	m := result(t)
	conn.raw(`{"type":"reply_chunk","from":"you","stream_id":"s","chunk":"one","seq":2}`)
	if text, err := m.Next(await.Context(t)); text != "one" || err != nil {
		t.Fatalf("Next = %q, %v", text, err)
	}
	cancel() // of the request ends its reply
	if f := conn.expect("cancel"); f.To != "you" || f.StreamID != "s" {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	if _, err := m.Next(await.Context(t)); !errors.Is(err, ErrCancelled) {
		t.Fatalf("Next = %v, want ErrCancelled", err)
	}
}

func TestReplyToARequestThatWasGivenUpIsDroppedAndItsStreamCancelled(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	next := receiver(t, c)
	if _, err := c.Request(ctx, "you", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Request = %v, want its context's error", err)
	}
	f := conn.expect("send")
	conn.send(wire.Frame{Type: "reply", From: "you", StreamID: "s", Stream: true, Payload: f.Payload, Seq: 1})
	conn.expect("cancel")
	conn.raw(`{"type":"message","from":"you","payload":1,"seq":2}`)
	if m := next(); m.IsReply {
		t.Fatal("a reply that nobody waits for came as a message")
	}
}

func TestRequestThatTheClusterGivesUpFails(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	for i, answer := range []func(f wire.Frame, id string) wire.Frame{
		func(f wire.Frame, _ string) wire.Frame {
			return wire.Frame{Type: "error", Code: "AGENT_NOT_FOUND", Message: "m", To: f.To, RequestID: f.ID}
		},
		func(f wire.Frame, id string) wire.Frame {
			return wire.Frame{Type: "error", Code: "TIMEOUT", Message: "m", To: "you", RequestID: id}
		},
	} {
		result := errOf(func() error { _, err := c.Request(await.Context(t), "you", nil); return err })
		f := conn.expect("send")
		if i == 1 {
			conn.stored(f)
		}
		conn.send(answer(f, (&Message{Payload: f.Payload}).RequestID()))
		if err := result(t); err == nil {
			t.Fatal("Request = nil error")
		} else if _, ok := errors.AsType[*agora.Error](err); !ok {
			t.Fatalf("Request = %v", err)
		}
	}
}

func TestReplyCopiesTheRequestID(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"you","payload":{"request_id":17},"seq":1}`)
	m := next()
	reply := errOf(func() error { return m.Reply(await.Context(t), map[string]string{"text": "x"}) })
	f := conn.expect("reply")
	if string(f.Payload) != `{"request_id":17,"text":"x"}` || f.To != "you" {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	conn.stored(f)
	if err := reply(t); err != nil {
		t.Fatal(err)
	}
	if err := m.Reply(await.Context(t), "no object"); agora.AsError(err).Code != agora.InvalidRequest {
		t.Fatalf("Reply = %v, want INVALID_REQUEST", err)
	}
	stream := async(func() (*Stream, error) { return m.ReplyStream(await.Context(t), nil) })
	f = conn.expect("reply")
	if string(f.Payload) != `{"request_id":17}` || !f.Stream {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	conn.stored(f)
	s := stream(t)
	s.WriteString("a")
	conn.expect("reply_chunk")
	s.Cancel()
	conn.expect("cancel")
}

func TestExchangeStreamsBothWays(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	open := async(func() (*Exchange, error) { return c.RequestStream(await.Context(t), "you", nil) })
	f := conn.expect("send")
	conn.stored(f)
	x := open(t)
	x.WriteString("question")
	conn.expect("send_chunk")
	conn.send(wire.Frame{Type: "reply", From: "you", StreamID: f.StreamID, Stream: true, Seq: 1})
	m, err := x.Reply()
	if err != nil {
		t.Fatal(err)
	}
	conn.raw(fmt.Sprintf(`{"type":"reply_chunk","from":"you","stream_id":%q,"chunk":"answer","seq":2}`, f.StreamID))
	conn.raw(fmt.Sprintf(`{"type":"reply_end","from":"you","stream_id":%q,"seq":3}`, f.StreamID))
	if text, err := m.Text(await.Context(t)); text != "answer" || err != nil {
		t.Fatalf("Text = %q, %v", text, err)
	}
	closed := errOf(x.Close)
	conn.stored(conn.expect("send_end"))
	if err := closed(t); err != nil {
		t.Fatal(err)
	}
}

// A request whose context is cancelled is given up for the agent that was asked as well; one whose time is over need
// not be, as the edge tells of that.
func TestARequestThatIsCancelledIsGivenUpAtItsOtherEnd(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Request(ctx, "you", nil)
		failed <- err
	}()
	f := conn.expect("send")
	cancel()
	if err := await.Recv(t, "the end of the request", failed); !errors.Is(err, context.Canceled) {
		t.Fatalf("Request = %v", err)
	}
	name := wire.RequestIDOf(f.Payload)
	if g := conn.expect("cancel"); g.To != "you" || g.RequestID != name || g.StreamID != "" || g.N != 2 {
		t.Fatalf("client sent %s", g.Append(nil))
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Request(ctx, "you", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	sendAll(t, c, 1)
	for f := conn.next(); f.N < 3 || wire.RequestIDOf(f.Payload) != ""; f = conn.next() {
		if f.Type != "send" {
			t.Fatalf("client sent %s", f.Append(nil))
		}
	}
}
