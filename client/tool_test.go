package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

// called calls a tool, and returns its frame.
func called(t *testing.T, c *Client, conn *peerConn) (*Call, wire.Frame) {
	t.Helper()
	call, err := c.CallTool(await.Context(t), "you", "read", raw(`{"n": 1.0}`))
	if err != nil {
		t.Fatal(err)
	}
	f := conn.expect("call_tool")
	if f.ID == "" || f.To != "you" || f.ToolName != "read" || string(f.Arguments) != `{"n": 1.0}` || f.ParentID != "" || f.DeadlineMS <= 0 {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	return call, f
}

func piece(id string, index int, body string) string {
	return fmt.Sprintf(`{"type":"tool.chunk","id":%q,"from":"you","index":%d,"body":%s}`, id, index, body)
}

func result(id, rest string) string {
	return fmt.Sprintf(`{"type":"tool.result","id":%q,"from":"you"%s}`, id, rest)
}

// bodies reads the pieces of an answer to its end.
func bodies(t *testing.T, call *Call) (got string, err error) {
	t.Helper()
	for a, e := range call.Chunks() {
		if err = e; err == nil {
			got += string(a.Body) + a.Media + " "
		}
	}
	return got, err
}

func TestAToolIsCalledAndAnswersInPieces(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{Traceparent: func(context.Context) string { return "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }})
	call, f := called(t, c, conn)
	if f.Traceparent == "" {
		t.Error("the call belongs to no trace")
	}
	conn.raw(piece(f.ID, 0, `"a"`))
	conn.raw(piece(f.ID, 1, `"iVA=","media":"image/png"`))
	conn.raw(piece("another", 0, `"not mine"`))
	conn.raw(result(f.ID, `,"body":{"lines": 4.0}`))
	if got, err := bodies(t, call); got != `"a" "iVA="image/png ` || err != nil {
		t.Fatalf("pieces are %s, %v", got, err)
	}
	for range 2 {
		if a, err := call.Result(await.Context(t)); err != nil || string(a.Body) != `{"lines": 4.0}` {
			t.Fatalf("Result = %s, %v", a.Body, err)
		}
	}
	if err := call.Close(); err != nil {
		t.Fatal(err)
	}
	settled(t, c)
}

// givenUp expects the edge to be told that nobody waits for a call.
func (p *peerConn) givenUp(f wire.Frame) {
	p.t.Helper()
	if g := p.expect("cancel"); g.To != f.To || g.StreamID != f.ID || g.N != 0 {
		p.t.Fatalf("client sent %s", g.Append(nil))
	}
}

// settled expects the client to have nothing left of any call.
func settled(t *testing.T, c *Client) {
	t.Helper()
	until(t, func() bool {
		c.mail.mu.Lock()
		defer c.mail.mu.Unlock()
		c.asks.mu.Lock()
		defer c.asks.mu.Unlock()
		frames, _ := c.out.pending()
		return c.mail.bytes == 0 && len(c.asks.calls) == 0 && frames == 0
	})
}

func TestAToolCallFailsAsItIsTold(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	for answer, want := range map[string]string{
		`{"type":"error","code":"NOT_FOUND","message":"no such tool","request_id":%q,"to":"you"}`:                                    "NOT_FOUND: no such tool",
		`{"type":"error","code":"UNAVAILABLE","message":"not now","request_id":%q,"to":"you"}`:                                       "UNAVAILABLE: not now",
		`{"type":"tool.result","id":%q,"from":"you","error":{"code":"INVALID_REQUEST","message":"no such file","path":"/arg/path"}}`: "INVALID_REQUEST: no such file /arg/path",
	} {
		call, f := called(t, c, conn)
		conn.raw(fmt.Sprintf(answer, f.ID))
		_, err := call.Result(await.Context(t))
		got := fmt.Sprint(err)
		if e, ok := errors.AsType[*AnswerError](err); ok {
			got += " " + e.Path
		}
		if got != want || agora.AsError(err).Code != agora.Code(strings.SplitN(want, ":", 2)[0]) {
			t.Errorf("Result = %q, want %q", got, want)
		}
	}
	settled(t, c)
}

func TestAToolCallEndsWithItsContextAndWithClose(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx, cancel := context.WithCancel(await.Context(t))
	call, err := c.CallTool(ctx, "you", "read", nil)
	if err != nil {
		t.Fatal(err)
	}
	f := conn.expect("call_tool")
	cancel()
	if _, err := call.Result(await.Context(t)); !errors.Is(err, context.Canceled) {
		t.Fatalf("Result = %v, want the context's error", err)
	}
	conn.givenUp(f)
	conn.raw(piece(f.ID, 0, `"late"`))
	conn.raw(fmt.Sprintf(`{"type":"error","code":"STREAM_NOT_FOUND","message":"none","to":"you","stream_id":%q}`, f.ID)) // its end crossed the cancel
	call, f = called(t, c, conn)
	conn.raw(piece(f.ID, 0, `"unread"`))
	call.Close()
	conn.givenUp(f)
	if _, err := call.Next(await.Context(t)); !errors.Is(err, ErrCancelled) {
		t.Fatalf("Next = %v, want ErrCancelled", err)
	}
	settled(t, c)
	if _, err := c.CallTool(ctx, "you", "read", nil); err == nil {
		t.Fatal("a call whose context is over was made")
	}
	settled(t, c)
}

func TestAToolCallIsSentAgainInItsSessionAndItsPiecesComeOnce(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	call, f := called(t, c, conn)
	conn.raw(piece(f.ID, 0, `"a"`))
	if a, err := call.Next(await.Context(t)); err != nil || string(a.Body) != `"a"` {
		t.Fatalf("Next = %s, %v", a.Body, err)
	}
	conn.cut()
	conn = p.accept()
	conn.register(true)
	if again := conn.expect("call_tool"); again.ID != f.ID || again.To != "you" {
		t.Fatalf("sent again as %s", again.Append(nil))
	}
	conn.raw(piece(f.ID, 0, `"a"`))
	conn.raw(piece(f.ID, 1, `"b"`))
	conn.raw(result(f.ID, ``))
	if got, err := bodies(t, call); got != `"b" ` || err != nil {
		t.Fatalf("pieces are %s, %v", got, err)
	}
	if a, err := call.Result(await.Context(t)); a.Body != nil || err != nil {
		t.Fatalf("Result = %s, %v", a.Body, err)
	}
	call, _ = called(t, c, conn)
	conn.cut()
	p.accept().register(false)
	if _, err := call.Result(await.Context(t)); !errors.Is(err, ErrUnknown) {
		t.Fatalf("Result in another session = %v, want ErrUnknown", err)
	}
}

func TestAToolAnswerThatIsNotReadHoldsUpTheOthersOnlyForAWhile(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{MaxBuffered: 1 << 10, Stall: 50 * time.Millisecond})
	next := receiver(t, c)
	call, f := called(t, c, conn)
	for i := range 4 {
		conn.raw(piece(f.ID, i, `"`+strings.Repeat("x", 1<<10)+`"`))
	}
	conn.raw(`{"type":"message","from":"you","payload":1,"seq":1}`)
	if m := next(); m.Seq != 1 {
		t.Fatalf("message %+v", m)
	}
	if _, err := call.Result(await.Context(t)); err == nil || agora.AsError(err).Code != agora.StreamAborted {
		t.Fatalf("Result = %v, want STREAM_ABORTED", err)
	}
}

func TestAToolIsCalledForARequest(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"host","payload":{"action":"execute"},"seq":1,"request_id":"m-1"}`)
	m := next()
	if _, err := m.CallTool(await.Context(t), "read", nil); err != nil {
		t.Fatal(err)
	}
	if f := conn.expect("call_tool"); f.To != "host" || f.ParentID != "m-1" || f.Arguments != nil {
		t.Fatalf("client sent %s", f.Append(nil))
	}
}

func TestRequestsNamedBesideTheirPayloadsAreAnsweredThere(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"host","payload":[1],"seq":1,"request_id":"m-1"}`)
	m := next()
	if m.RequestID() != "m-1" {
		t.Fatalf("RequestID = %q", m.RequestID())
	}
	replied := errOf(func() error { return m.Reply(await.Context(t), raw(`7`)) })
	f := conn.expect("reply")
	if f.RequestID != "m-1" || string(f.Payload) != `7` {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	conn.stored(f)
	if err := replied(t); err != nil {
		t.Fatal(err)
	}
	opened := async(func() (*Stream, error) { return m.ReplyStream(await.Context(t), nil) })
	f = conn.expect("reply")
	if f.RequestID != "m-1" || !f.Stream || f.Payload != nil {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	conn.stored(f)
	s := opened(t)
	closed := errOf(func() error { return s.CloseWith(raw(`{"n": 1.0}`)) })
	f = conn.expect("reply_end")
	if string(f.Payload) != `{"n": 1.0}` {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	conn.stored(f)
	if err := closed(t); err != nil {
		t.Fatal(err)
	}
}

func TestAReplyThatIsNamedBesideItsPayloadAnswersItsRequest(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	got := async(func() (*Message, error) { return c.Request(await.Context(t), "sub", nil) })
	f := conn.expect("send")
	id, _ := member(f.Payload, "request_id")
	conn.stored(f)
	conn.raw(fmt.Sprintf(`{"type":"reply","from":"sub","stream_id":"s","stream":true,"request_id":%s,"seq":1}`, id))
	m := got(t)
	conn.raw(`{"type":"reply_chunk","from":"sub","stream_id":"s","chunk":"tidied","seq":2}`)
	conn.raw(`{"type":"reply_end","from":"sub","stream_id":"s","payload":{"action":"done"},"seq":3}`)
	if m.EndPayload() != nil {
		t.Fatalf("the end has %s before it was read", m.EndPayload())
	}
	if text, err := m.Text(await.Context(t)); text != "tidied" || err != nil {
		t.Fatalf("text is %q, %v", text, err)
	}
	if _, err := m.Next(await.Context(t)); !errors.Is(err, io.EOF) || string(m.EndPayload()) != `{"action":"done"}` {
		t.Fatalf("the end has %s, %v", m.EndPayload(), err)
	}
	m.Close()
	settled(t, c)
}
