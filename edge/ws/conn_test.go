package ws

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"

	"github.com/agora-relay/agora/edge/ws/frame"
)

func TestBadFramesAreAnsweredAndTheConnectionKept(t *testing.T) {
	_, s := serve(t, Config{}, node{frame: 1000})
	c := dial(t, s)
	for _, bad := range []struct {
		about string
		kind  int
		text  string
		code  agora.Code
		id    string
	}{
		{"no JSON", websocket.TextMessage, `{`, agora.InvalidRequest, ""},
		{"unknown type", websocket.TextMessage, `{"type":"dance","id":"m1"}`, agora.InvalidRequest, "m1"},
		{"not for agents", websocket.TextMessage, `{"type":"agents","id":"m2"}`, agora.InvalidRequest, "m2"},
		{"missing field", websocket.TextMessage, `{"type":"send","id":"m3"}`, agora.InvalidRequest, "m3"},
		{"before registration", websocket.TextMessage, `{"type":"send","id":"m4","to":"x"}`, agora.InvalidRequest, "m4"},
		{"binary", websocket.BinaryMessage, `{"type":"list"}`, agora.InvalidRequest, ""},
		{"invalid UTF-8", websocket.TextMessage, "{\"type\":\"send\",\"to\":\"\xff\"}", agora.InvalidRequest, ""},
		{"too large", websocket.TextMessage, `{"type":"send","to":"` + strings.Repeat("x", 1000) + `"}`, agora.MessageTooLarge, ""},
		{"much too large", websocket.TextMessage, strings.Repeat("x", 1<<20), agora.MessageTooLarge, ""},
		{"empty", websocket.TextMessage, "", agora.InvalidRequest, ""},
	} {
		t.Run(bad.about, func(t *testing.T) {
			c.t = t
			if err := c.WriteMessage(bad.kind, []byte(bad.text)); err != nil {
				t.Fatal(err)
			}
			if f := c.hearError(bad.code); f.RequestID != bad.id {
				t.Errorf("request_id = %q, want %q", f.RequestID, bad.id)
			}
		})
	}
}

func TestFrameOfExactlyTheLimitPassesAlsoInFragments(t *testing.T) {
	_, s := serve(t, Config{}, node{frame: 5000})
	c := dial(t, s)
	text := `{"type":"send","to":"x","id":"whole","payload":"` + strings.Repeat("y", 4000)
	text += strings.Repeat("y", 5000-2-len(text)) + `"}`
	c.say(text)
	if f := c.hearError(agora.InvalidRequest); f.RequestID != "whole" {
		t.Errorf("request_id = %q: the frame was not read", f.RequestID)
	}
	w, err := c.NextWriter(websocket.TextMessage)
	if err != nil {
		t.Fatal(err)
	}
	for piece := range strings.SplitAfterSeq(text+" ", "y") { // one byte too long, a fragment now and then
		fmt.Fprint(w, piece)
	}
	w.Close()
	c.hearError(agora.MessageTooLarge)
}

func TestMessageBeyondReasonClosesWith1009(t *testing.T) {
	_, s := serve(t, Config{MaxMessage: 1 << 16}, node{frame: 1000})
	c := dial(t, s)
	c.WriteMessage(websocket.TextMessage, make([]byte, 1<<20)) // the answer may come before it is through
	c.hearClose(websocket.CloseMessageTooBig)
}

func TestFloodOfErrorsClosesWith1008(t *testing.T) {
	_, s := serve(t, Config{}, node{})
	c := dial(t, s)
	errors := 0
	for { // a flood is so many within some seconds
		if c.WriteMessage(websocket.TextMessage, []byte(`{}`)) != nil {
			break
		}
		if _, _, err := c.ReadMessage(); websocket.IsCloseError(err, frame.ClosePolicy) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		errors++
	}
	if errors <= 100 {
		t.Errorf("closed after %d errors, want more than 100", errors)
	}
}

func TestPeerThatBreaksTheProtocolIsToldSo(t *testing.T) {
	_, s := serve(t, Config{}, node{})
	c := dial(t, s)
	if _, err := c.NetConn().Write([]byte{0x83, 0x80, 0, 0, 0, 0}); err != nil { // a reserved frame.Op
		t.Fatal(err)
	}
	c.hearClose(websocket.CloseProtocolError)
}

func TestPingIsAnsweredWithItsData(t *testing.T) {
	_, s := serve(t, Config{}, node{})
	c := dial(t, s)
	got := make(chan string, 1)
	c.SetPongHandler(func(data string) error { got <- data; return nil })
	if err := c.WriteControl(websocket.PingMessage, []byte("are you there?"), time.Now().Add(await.Long)); err != nil {
		t.Fatal(err)
	}
	c.say(`{}`)
	c.hear() // which reads the pong first
	if data := <-got; data != "are you there?" {
		t.Errorf("pong = %q", data)
	}
}

func TestCloseIsAnsweredWithItsCode(t *testing.T) {
	d, s := serve(t, Config{}, node{})
	for _, code := range []int{websocket.CloseNormalClosure, 4321, websocket.CloseNoStatusReceived} {
		c := dial(t, s)
		if err := c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, "bye"), time.Now().Add(await.Long)); err != nil {
			t.Fatal(err)
		}
		c.hearClose(code)
	}
	await.True(t, "all are gone", func() bool { return d.Stats().Connections.Load() == 0 })
}

func TestSilentStrangerIsPingedThenClosed(t *testing.T) {
	t.Parallel()
	_, s := serve(t, Config{}, node{heartbeat: 50 * time.Millisecond, timeout: 5 * time.Second})
	lively, dead := dial(t, s), dial(t, s)
	heard := make(chan error, 1)
	go func() { // pongs are written while it reads
		_, _, err := lively.ReadMessage()
		heard <- err
	}()
	pings := 0
	dead.SetPingHandler(func(string) error { pings++; return nil }) // and no pong
	dead.hearClose(frame.CloseAway)
	if pings < 2 {
		t.Errorf("got %d pings, want some", pings)
	}
	lively.say(`{}`)
	if err := <-heard; err != nil {
		t.Errorf("a peer that answers its pings was closed: %v", err)
	}
}

func TestPeerThatNeverReadsIsReadNoFurtherAndThenClosed(t *testing.T) {
	t.Parallel()
	const answers = 64 << 10
	d, s := serve(t, Config{Answers: answers, MaxErrors: 1 << 30, Linger: 500 * time.Millisecond}, node{timeout: 2 * time.Second, heartbeat: time.Minute})
	c := dial(t, s)
	c.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10)
	frame := `{"type":"send","to":"x","id":"` + strings.Repeat("i", 200) + `"}`
	c.SetWriteDeadline(time.Now().Add(await.Long))
	for c.WriteMessage(websocket.TextMessage, []byte(frame)) == nil {
		for q := range d.queued() {
			if q > 6*answers { // in buffers, of which one is being written
				t.Fatalf("%d bytes are kept for answers, want %d queued at most", q, answers)
			}
		}
	}
	await.True(t, "it is closed", func() bool { return d.Stats().Connections.Load() == 0 })
	// Mostly a write has stalled; now and then nothing of the peer's has come
	// for as long, before the writer was stuck. It is the one or the other.
	if stalled, silent := d.Stats().Stalled.Load(), d.Stats().Silent.Load(); stalled+silent != 1 {
		t.Errorf("counted %d stalled and %d silent sockets, want one in all", stalled, silent)
	}
}

// queued returns how much each connection has queued.
func (d *Door) queued() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for c := range d.conns {
			if held, _ := c.out.Held(); !yield(int(held)) {
				return
			}
		}
	}
}

func TestConnectionIDsDiffer(t *testing.T) {
	a, seen := newNames(), map[string]bool{}
	for range 10_000 {
		id := a.name()
		if seen[id] {
			t.Fatalf("%s was given twice", id)
		}
		seen[id] = true
		if strings.Trim(id, "0123456789") != "ws-" {
			t.Fatalf("%s is not ws- and digits", id)
		}
	}
}
