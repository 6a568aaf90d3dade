package client

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

// later refuses a frame for the moment.
func (p *peerConn) later(f wire.Frame) {
	p.t.Helper()
	p.send(wire.Frame{
		Type: "error", Code: "UNAVAILABLE", Message: "later", RequestID: f.ID,
		To: f.To, Space: f.Space, StreamID: f.StreamID, EventID: f.EventID, N: f.N, RetryAfterMS: 60,
	})
}

// numbered returns the next frame, which must have that number and payload.
func (p *peerConn) numbered(n uint64, payload string) wire.Frame {
	p.t.Helper()
	f := p.next()
	if f.N != n || string(f.Payload) != payload {
		p.t.Fatalf("client sent %s, want n %d and payload %s", f.Append(nil), n, payload)
	}
	return f
}

// quiet fails the test when a frame has come that nobody took.
func (p *peerConn) quiet() {
	p.t.Helper()
	for len(p.frames) > 0 {
		if f := <-p.frames; f.Type != "ack" && f.Type != "agent.heartbeat" {
			p.t.Fatalf("client sent %s", f.Append(nil))
		}
	}
}

func wantAll(t *testing.T, pending []*Pending) {
	t.Helper()
	for i, s := range pending {
		if err := s.Wait(await.Context(t)); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}

func TestWhatIsRefusedForTheMomentIsSentAgain(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 1)
	f := conn.numbered(1, "0")
	for _, pause := range []time.Duration{60 * time.Millisecond, 120 * time.Millisecond} {
		start := time.Now()
		conn.later(f)
		f = conn.numbered(1, "0")
		if took := time.Since(start); took < pause {
			t.Fatalf("sent again after %v, want %v", took, pause)
		}
	}
	conn.stored(f)
	wantAll(t, pending)
	pending = sendAll(t, c, 2)
	conn.numbered(2, "0")
	conn.stored(conn.numbered(3, "1"))
	wantAll(t, pending)
}

func TestNothingOvertakesWhatWasRefused(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 3)
	var refused []wire.Frame
	for i := range 3 {
		refused = append(refused, conn.numbered(uint64(i+1), strconv.Itoa(i)))
	}
	for _, f := range refused {
		conn.later(f)
	}
	other := errOf(func() error { return c.Send(await.Context(t), "other", raw(`"o"`)) })
	conn.stored(conn.numbered(1, `"o"`))
	if err := other(t); err != nil {
		t.Fatalf("another lane was held up: %v", err)
	}
	pending = append(pending, sendAll(t, c, 1)...)
	conn.stored(conn.numbered(1, "0"))
	conn.numbered(2, "1")
	conn.numbered(3, "2")
	conn.stored(conn.numbered(4, "0"))
	wantAll(t, pending)
	conn.quiet()
}

func TestAPartThatIsRefusedAbortsItsStreamAlone(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	open := async(func() (*Stream, error) { return c.OpenStream(await.Context(t), "you", nil) })
	conn.stored(conn.expect("send"))
	s := open(t)
	s.WriteString("a")
	first := conn.expect("send_chunk")
	s.WriteString("b")
	second := conn.expect("send_chunk")
	conn.later(first)
	conn.later(second)
	until(t, func() bool {
		_, err := s.WriteString("c")
		return err != nil && agora.AsError(err).Code == agora.StreamAborted
	})
	if err := s.Close(); agora.AsError(err).Code != agora.StreamAborted {
		t.Fatalf("Close = %v, want STREAM_ABORTED", err)
	}
	pending := sendAll(t, c, 2)
	f := conn.next()
	for f.Type == "send_chunk" { // written before the refusal came
		f = conn.next()
	}
	if f.N != 2 || string(f.Payload) != "0" {
		t.Fatalf("client sent %s, want the next message under number 2", f.Append(nil))
	}
	conn.stored(f)
	conn.stored(conn.numbered(3, "1"))
	wantAll(t, pending)
}

func TestAStartThatIsRefusedIsSentAgain(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	open := async(func() (*Stream, error) { return c.OpenStream(await.Context(t), "you", nil) })
	conn.later(conn.expect("send"))
	f := conn.expect("send")
	conn.stored(f)
	s := open(t)
	s.WriteString("a")
	if part := conn.expect("send_chunk"); part.N != 2 || part.StreamID != f.StreamID {
		t.Fatalf("client sent %s", part.Append(nil))
	}
}

func TestTheNumberOfWhatIsGivenUpIsTakenByTheNext(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	result := errOf(func() error { return c.Send(ctx, "you", raw("0")) })
	conn.later(conn.numbered(1, "0"))
	until(t, func() bool { c.out.mu.Lock(); defer c.out.mu.Unlock(); return len(c.out.blocked) > 0 })
	cancel()
	if err := result(t); !errors.Is(err, context.Canceled) {
		t.Fatalf("Send = %v", err)
	}
	result = errOf(func() error { return c.Send(await.Context(t), "you", raw("1")) })
	conn.stored(conn.numbered(1, "1"))
	if err := result(t); err != nil {
		t.Fatal(err)
	}
}

func TestWhatNobodyWaitsForIsNotSentAgain(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	result := errOf(func() error { return c.Send(ctx, "you", raw("0")) })
	f := conn.numbered(1, "0")
	cancel()
	if err := result(t); !errors.Is(err, context.Canceled) {
		t.Fatalf("Send = %v", err)
	}
	conn.later(f)
	until(t, func() bool { n, _ := c.out.pending(); return n == 0 })
	pending := sendAll(t, c, 1)
	conn.stored(conn.numbered(1, "0"))
	wantAll(t, pending)
}

func TestPatienceEnds(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{Patience: 100 * time.Millisecond})
	message := sendAll(t, c, 1)[0]
	for over := false; !over; {
		select {
		case f := <-conn.frames:
			conn.later(f)
		case <-message.f.done:
			over = true
		}
	}
	err := message.Wait(await.Context(t))
	if err == nil || agora.AsError(err).Code != agora.Unavailable {
		t.Fatalf("Send = %v, want UNAVAILABLE", err)
	}
	pending := sendAll(t, c, 1)
	conn.stored(conn.numbered(1, "0"))
	wantAll(t, pending)
}

func TestANumberThatIsRefusedForGoodIsPassedOver(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 3)
	refused := []wire.Frame{conn.next(), conn.next(), conn.next()}
	for _, f := range refused {
		conn.later(f)
	}
	f := conn.numbered(1, "0")
	conn.send(wire.Frame{Type: "error", Code: "RATE_LIMITED", Message: "m", RequestID: f.ID, To: f.To, N: f.N})
	if err := pending[0].Wait(await.Context(t)); agora.AsError(err).Code != agora.RateLimited {
		t.Fatalf("Wait = %v, want RATE_LIMITED", err)
	}
	conn.later(conn.numbered(2, "1")) // an edge may wait for number 1 still
	conn.stored(conn.numbered(1, "1"))
	conn.stored(conn.numbered(2, "2"))
	wantAll(t, pending[1:])
}

func TestARefusedNumberComesFirstAfterAReconnect(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 4)
	for range 4 {
		conn.next()
	}
	conn.send(wire.Frame{Type: "receipt", To: "you", N: 1, Status: "stored"})
	conn.send(wire.Frame{Type: "error", Code: "UNAVAILABLE", Message: "m", To: "you", N: 3, RetryAfterMS: 60000})
	until(t, func() bool { c.out.mu.Lock(); defer c.out.mu.Unlock(); return len(c.out.blocked) > 0 })
	conn.cut()
	conn = p.accept()
	conn.register(true)
	conn.stored(conn.numbered(2, "1"))
	conn.stored(conn.numbered(3, "2"))
	conn.stored(conn.numbered(4, "3"))
	wantAll(t, pending)
	conn.quiet()
}

func TestANewSessionSendsWhatWasRefused(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 2)
	conn.numbered(1, "0")
	conn.later(conn.numbered(2, "1"))
	until(t, func() bool { c.out.mu.Lock(); defer c.out.mu.Unlock(); return len(c.out.blocked) > 0 })
	conn.cut()
	conn = p.accept()
	conn.register(false)
	conn.stored(conn.numbered(1, "1"))
	if err := pending[0].Wait(await.Context(t)); !errors.Is(err, ErrUnknown) {
		t.Fatalf("Wait = %v, want ErrUnknown", err)
	}
	wantAll(t, pending[1:])
}

func TestASpaceSendsAgainWhatIsRefusedForTheMoment(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	s := join(t, c, conn, 100)
	result := errOf(func() error { return s.PublishText(await.Context(t), "x") })
	conn.later(conn.expect("space.publish"))
	f := conn.expect("space.publish")
	conn.send(wire.Frame{Type: "receipt", Space: f.Space, N: 1, Status: "stored"})
	if err := result(t); err != nil || f.N != 1 {
		t.Fatalf("Publish = %v with n %d", err, f.N)
	}
	open := async(func() (*Stream, error) { return s.Stream(await.Context(t), nil) })
	f = conn.expect("space.publish")
	conn.send(wire.Frame{Type: "space.published", ID: f.ID, Space: f.Space, EventID: "evt_1"})
	st := open(t)
	f.EventID = "evt_1"
	conn.later(f) // parts may have followed already
	until(t, func() bool {
		_, err := st.WriteString("y")
		return err != nil && agora.AsError(err).Code == agora.StreamAborted
	})
	st.Close()
	result = errOf(func() error { return s.PublishText(await.Context(t), "z") })
	f = conn.next()
	for f.Type != "space.publish" {
		f = conn.next()
	}
	conn.send(wire.Frame{Type: "receipt", Space: f.Space, N: 2, Status: "stored"})
	if err := result(t); err != nil || f.N != 2 {
		t.Fatalf("Publish = %v with n %d", err, f.N)
	}
}

// An edge that has taken over from a dead one may not know that a request was
// answered, and tells that its time is up: that concerns nothing else.
func TestALateTimeoutConcernsNoOtherMessage(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 1)
	f := conn.expect("send")
	ask := async(func() (*Message, error) { return c.Request(await.Context(t), "you", nil) })
	q := conn.expect("send")
	conn.send(wire.Frame{Type: "error", Code: string(agora.Timeout), To: "you", Message: "time is up"})
	conn.stored(f)
	if err := pending[0].Wait(await.Context(t)); err != nil {
		t.Errorf("Wait = %v", err)
	}
	conn.stored(q)
	conn.send(wire.Frame{Type: "reply", From: "you", Payload: q.Payload, Seq: 1})
	ask(t)
}

// A message that is too much holds up what was sent behind it, until that is heard again: streams among it lose
// nothing, and go on.
func TestAStreamGoesOnBehindAMessageThatIsTooMuch(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	open := async(func() (*Stream, error) { return c.OpenStream(await.Context(t), "you", nil) })
	conn.stored(conn.expect("send"))
	s := open(t)
	message := sendAll(t, c, 1)[0]
	tooMuch := conn.numbered(2, "0")
	s.WriteString("a")
	behind := conn.expect("send_chunk")
	conn.send(wire.Frame{Type: "error", Code: "RATE_LIMITED", Message: "m", RequestID: tooMuch.ID, To: tooMuch.To, N: tooMuch.N, RetryAfterMS: 60})
	conn.later(behind)
	if err := message.Wait(await.Context(t)); agora.AsError(err).Code != agora.RateLimited {
		t.Fatalf("Wait = %v, want RATE_LIMITED", err)
	}
	again := conn.expect("send_chunk")
	if again.N != behind.N || string(again.Chunk) != string(behind.Chunk) {
		t.Fatalf("client sent %s, want %s again", again.Append(nil), behind.Append(nil))
	}
	conn.stored(again)
	closed := errOf(s.Close)
	conn.stored(conn.expect("send_end"))
	if err := closed(t); err != nil {
		t.Fatalf("Close = %v", err)
	}
}
