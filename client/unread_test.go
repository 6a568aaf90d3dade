package client

import (
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/internal/await"
)

// For a client that never acknowledges, an edge takes what it has written for read. This one does, but perhaps not before
// its application has taken a first message: so it says so on every connection, before anything comes.
func TestEveryConnectionBeginsWithAnAcknowledgement(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	_, conn := dial(t, p, Config{LastSeq: 7})
	for range 2 {
		if f := conn.any(); f.Type != "ack" || f.Space != "" || f.Seq != 7 {
			t.Fatalf("behind its registration the client sent %s, want an ack of 7", f.Append(nil))
		}
		conn.cut()
		conn = p.accept()
		conn.register(true)
	}
}

// A ping may come right behind the answer to a registration, and a message before it: its pong must not be believed.
func TestTheFirstAcknowledgementComesBeforeAnyPong(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.pongs = true
	c := async(func() (*Client, error) {
		return Dial(await.Context(t), Config{URLs: []string{p.url}, Agent: "me", LastSeq: 7})
	})
	conn := p.accept()
	conn.register(false)
	if err := conn.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(await.Long)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ack", "pong"} {
		if f := conn.any(); f.Type != want {
			t.Fatalf("the client sent %q, want %q", f.Type, want)
		}
	}
	c(t).Close()
}
