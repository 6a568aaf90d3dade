package client

import (
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/internal/await"
)

// For a client that never acknowledges, an edge takes what it has written for read. This one does, but perhaps not
// before its application has taken a first message: so it says so on every connection, before anything comes.
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

// What can be made of the rest of a stream without its beginning? A program that ends in the midst of one is given all
// of it again.
func TestAStreamIsAcknowledgedWhenAllOfItWasRead(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(*testing.T, *Message){
		"read": func(t *testing.T, m *Message) {
			if text, err := m.Text(await.Context(t)); text != "xy" || err != nil {
				t.Errorf("Text = %q, %v", text, err)
			}
		},
		"given up": func(_ *testing.T, m *Message) { m.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t)
			c, conn := dial(t, p, Config{})
			next := receiver(t, c)
			conn.raw(`{"type":"message","from":"a","seq":10}`)
			conn.raw(`{"type":"message","from":"a","stream_id":"s","stream":true,"seq":20}`)
			conn.raw(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":"x","seq":30}`)
			conn.raw(`{"type":"message_chunk","from":"a","stream_id":"s","chunk":"y","seq":40}`)
			conn.raw(`{"type":"message","from":"a","seq":50}`)
			conn.raw(`{"type":"message","from":"a","seq":60}`)
			conn.raw(`{"type":"message_end","from":"a","stream_id":"s","seq":70}`)
			next()
			streamed := next()
			next()
			next()
			conn.acked("", 10)
			over(t, streamed)
			conn.acked("", 50)
		})
	}
}

func TestAnEventInPartsIsAcknowledgedWhenAllOfItWasRead(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := events(t, join(t, c, conn, 100))
	conn.raw(`{"type":"space.event","space":"general","data":{"from":"you"},"seq":200}`)
	conn.raw(`{"type":"space.event.delta","space":"general","event_id":"e","data":{"from":"you","text":"x"},"seq":300}`)
	conn.raw(`{"type":"space.event","space":"general","data":{"from":"you"},"seq":400}`)
	conn.raw(`{"type":"space.event.done","space":"general","event_id":"e","seq":500}`)
	next()
	streamed := next()
	next()
	conn.acked("general", 200)
	if text, err := streamed.Text(await.Context(t)); text != "x" || err != nil {
		t.Fatalf("Text = %q, %v", text, err)
	}
	conn.acked("general", 500)
}
