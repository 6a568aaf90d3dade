package client

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
	"github.com/gorilla/websocket"
)

// sendAll sends numbered one-shots without waiting for their receipts.
func sendAll(t *testing.T, c *Client, n int) []*Pending {
	t.Helper()
	var all []*Pending
	for i := range n {
		p, err := c.SendAsync(await.Context(t), "you", raw(strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func TestAResumeTokenThatTheEdgeDoesNotKnowIsGivenUpAndTheSessionGoesOn(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 1)
	first := conn.expect("send")
	conn.cut()
	conn = p.accept()
	wrong := conn.expect("agent.register")
	conn.send(wire.Frame{Type: "error", Code: "INVALID_REQUEST", Message: "m", RequestID: wrong.ID})
	if f := conn.register(true); wrong.ResumeToken != "token-1" || f.ResumeToken != "" {
		t.Fatalf("resume tokens %q, then %q", wrong.ResumeToken, f.ResumeToken)
	}
	again := conn.expect("send")
	if again.N != first.N {
		t.Fatalf("sent again as %d, want %d", again.N, first.N)
	}
	conn.stored(again)
	if err := pending[0].Wait(await.Context(t)); err != nil {
		t.Fatal(err)
	}
}

func TestReconnectSendsAgainExactlyWhatHadNoReceipt(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 5)
	for range 5 {
		conn.expect("send")
	}
	conn.send(wire.Frame{Type: "receipt", To: "you", N: 2, Status: "stored"})
	if err := pending[1].Wait(await.Context(t)); err != nil {
		t.Fatal(err)
	}
	conn.cut()
	conn = p.accept()
	if f := conn.register(true); f.ResumeToken != "token-1" {
		t.Fatalf("resume token = %q", f.ResumeToken)
	}
	for n := 3; n <= 5; n++ {
		f := conn.expect("send")
		if f.N != uint64(n) || string(f.Payload) != strconv.Itoa(n-1) {
			t.Fatalf("sent again %s, want n %d", f.Append(nil), n)
		}
	}
	conn.send(wire.Frame{Type: "receipt", To: "you", N: 5, Status: "stored"})
	for _, s := range pending {
		if err := s.Wait(await.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	sendAll(t, c, 1)
	if f := conn.expect("send"); f.N != 6 {
		t.Fatalf("n = %d, want 6", f.N)
	}
}

func TestNewSessionReportsUnknownAndNumbersAnew(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 1)
	conn.expect("send")
	conn.cut()
	conn = p.accept()
	conn.register(false)
	if err := pending[0].Wait(await.Context(t)); !errors.Is(err, ErrUnknown) {
		t.Fatalf("Wait = %v, want ErrUnknown", err)
	}
	sendAll(t, c, 1)
	if f := conn.expect("send"); f.N != 1 {
		t.Fatalf("n = %d, want 1", f.N)
	}
}

func TestNewSessionAbortsOpenStreams(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	open := async(func() (*Stream, error) { return c.OpenStream(await.Context(t), "you", nil) })
	conn.stored(conn.expect("send"))
	s := open(t)
	conn.cut()
	p.accept().register(false)
	for {
		_, err := s.WriteString("x")
		if e := agora.AsError(err); err != nil && e.Code != agora.StreamAborted {
			t.Fatalf("Write = %v", err)
		} else if err != nil {
			break
		}
	}
	if err := s.Close(); agora.AsError(err).Code != agora.StreamAborted {
		t.Fatalf("Close = %v, want STREAM_ABORTED", err)
	}
}

func TestStreamGoesOnAcrossReconnect(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	open := async(func() (*Stream, error) { return c.OpenStream(await.Context(t), "you", nil) })
	conn.stored(conn.expect("send"))
	s := open(t)
	s.WriteString("a")
	conn.stored(conn.expect("send_chunk"))
	s.WriteString("b")
	conn.expect("send_chunk")
	conn.cut()
	conn = p.accept()
	conn.register(true)
	s.WriteString("c")
	closed := errOf(s.Close)
	var got []string
	f := conn.next()
	for ; f.Type == "send_chunk"; f = conn.next() {
		if f.N == 2 {
			continue // its receipt may have been lost with the connection
		}
		got = append(got, string(f.Chunk))
	}
	if f.Type != "send_end" || f.N != 5 || !slices.Equal(got, []string{`"b"`, `"c"`}) {
		t.Fatalf("got %q then %s", got, f.Append(nil))
	}
	conn.stored(f)
	if err := closed(t); err != nil {
		t.Fatal(err)
	}
}

func TestDialEndsTheSessionOfAnEarlierProcess(t *testing.T) {
	p := newPeer(t)
	result := async(func() (*Client, error) { return Dial(await.Context(t), Config{URLs: []string{p.url}, Agent: "me"}) })
	first := p.accept()
	first.register(true)
	if err := first.closed(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Fatalf("first connection ended with %v, want 1000", err)
	}
	p.accept().register(false)
	if err := result(t).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestServerAsksToReconnectLater(t *testing.T) {
	p := newPeer(t)
	_, conn := dial(t, p, Config{})
	start := time.Now()
	conn.send(wire.Frame{Type: "agent.reconnect", AfterMS: 150})
	next := p.accept()
	if took := time.Since(start); took < 150*time.Millisecond {
		t.Fatalf("came back after %v, want 150ms", took)
	}
	next.register(true)
	if err := conn.closed(); websocket.IsCloseError(err, 1000, 1001, 1005) {
		t.Fatalf("the old connection ended with %v, which ends the session", err)
	}
}

func TestTakenOverEndsTheClient(t *testing.T) {
	for code, want := range map[int]error{closeTakenOver: ErrTakenOver} {
		p := newPeer(t)
		c, conn := dial(t, p, Config{})
		conn.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(await.Long))
		for _, err := range c.Messages(await.Context(t)) {
			if !errors.Is(err, want) {
				t.Fatalf("Messages ended with %v, want %v", err, want)
			}
		}
		if err := c.Send(await.Context(t), "you", nil); !errors.Is(err, want) {
			t.Fatalf("Send = %v, want %v", err, want)
		}
		if err := c.Close(); !errors.Is(err, want) {
			t.Fatalf("Close = %v, want %v", err, want)
		}
	}
}

func TestRefusalsOfDial(t *testing.T) {
	p := newPeer(t)
	_, err := Dial(await.Context(t), Config{URLs: []string{p.url}, Agent: "me", Token: "wrong"})
	if agora.AsError(err).Code != agora.Unauthorized {
		t.Fatalf("Dial = %v, want UNAUTHORIZED", err)
	}
	_, err = Dial(await.Context(t), Config{URLs: []string{"ws://127.0.0.1:1"}, Agent: "me"})
	if agora.AsError(err).Code != agora.Unavailable {
		t.Fatalf("Dial = %v, want UNAVAILABLE", err)
	}
	result := errOf(func() error {
		_, err := Dial(await.Context(t), Config{URLs: []string{p.url}, Agent: "me"})
		return err
	})
	conn := p.accept()
	f := conn.expect("agent.register")
	conn.send(wire.Frame{Type: "error", Code: "AGENT_EXISTS", Message: "taken", RequestID: f.ID})
	if err := result(t); agora.AsError(err).Code != agora.AgentExists {
		t.Fatalf("Dial = %v, want AGENT_EXISTS", err)
	}
}

func TestTokenGoesInTheHeaderAlone(t *testing.T) {
	p := newPeer(t)
	_, conn := dial(t, p, Config{Token: "secret"})
	if got := conn.header.Get("Authorization"); got != "Bearer secret" {
		t.Fatalf("Authorization = %q", got)
	}
}

func TestCloseSaysGoodbye(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := conn.closed(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Fatalf("connection ended with %v, want 1000", err)
	}
	if err := c.Send(await.Context(t), "you", nil); !errors.Is(err, ErrClosed) {
		t.Fatalf("Send = %v, want ErrClosed", err)
	}
}

// unanswered returns the peer of a client that has sent a message, lost its connection, and then the answer to its next
// registration.
func unanswered(t *testing.T) (*peer, *Pending) {
	t.Helper()
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 1)
	conn.expect("send")
	conn.cut()
	conn = p.accept()
	conn.expect("agent.register")
	conn.cut() // the answer is lost
	return p, pending[0]
}

// The edge that never got its answer through may not know yet that the connection is gone.
func TestAnIDHeldByAConnectionOfOurOwnIsAskedForAgain(t *testing.T) {
	p, pending := unanswered(t)
	for range 2 {
		conn := p.accept()
		f := conn.expect("agent.register")
		conn.send(wire.Frame{Type: "error", RequestID: f.ID, Code: string(agora.AgentExists), Message: "connected elsewhere"})
	}
	conn := p.accept()
	conn.register(true)
	conn.stored(conn.expect("send"))
	if err := pending.Wait(await.Context(t)); err != nil {
		t.Fatal(err)
	}
}

// Its registration may come through behind that of the connection that followed it.
func TestATakeOverByAConnectionOfOurOwnIsUndone(t *testing.T) {
	p, pending := unanswered(t)
	conn := p.accept()
	conn.register(true)
	conn.expect("send")
	conn.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(closeTakenOver, ""), time.Now().Add(await.Long))
	conn = p.accept()
	f := conn.expect("agent.register")
	conn.send(wire.Frame{Type: "error", RequestID: f.ID, Code: string(agora.AgentExists), Message: "connected elsewhere"})
	conn = p.accept()
	conn.register(true)
	conn.stored(conn.expect("send"))
	if err := pending.Wait(await.Context(t)); err != nil {
		t.Fatal(err)
	}
}

func TestAnIDThatAnotherHasTakenIsGivenUp(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	conn.cut()
	conn = p.accept()
	f := conn.expect("agent.register")
	conn.send(wire.Frame{Type: "error", RequestID: f.ID, Code: string(agora.AgentExists), Message: "connected elsewhere"})
	<-c.Done()
	if e := agora.AsError(c.Err()); e.Code != agora.AgentExists {
		t.Fatalf("Err = %v, want AGENT_EXISTS", c.Err())
	}
}

func TestAConnectionClosedForTooManyErrorsIsMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	pending := sendAll(t, c, 1)
	conn.expect("send")
	bye := websocket.FormatCloseMessage(websocket.ClosePolicyViolation, "too many errors")
	if err := conn.conn.WriteMessage(websocket.CloseMessage, bye); err != nil {
		t.Fatal(err)
	}
	conn = p.accept()
	conn.register(true)
	conn.stored(conn.expect("send"))
	if err := pending[0].Wait(await.Context(t)); err != nil {
		t.Fatal(err)
	}
}
