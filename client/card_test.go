package client

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

func TestACardThatHasChangedIsRegisteredNowAndAfterEveryReconnect(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{Card: Card{Description: "old"}})
	update := func(text string) func(*testing.T) error {
		return errOf(func() error { return c.UpdateCard(await.Context(t), Card{Description: text}) })
	}
	updated := update("new")
	f := conn.expect("agent.register")
	if f.Agent.ID != "me" || f.Agent.Description != "new" || f.ResumeToken != "" {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	conn.send(wire.Frame{Type: "agent.registered", ID: f.ID, Agent: &wire.Agent{ID: "me"}})
	if err := updated(t); err != nil {
		t.Fatal(err)
	}
	refused := update("bad")
	f = conn.expect("agent.register")
	conn.send(wire.Frame{Type: "error", Code: string(agora.InvalidRequest), Message: "no", RequestID: f.ID})
	if err := refused(t); agora.AsError(err).Code != agora.InvalidRequest {
		t.Fatalf("UpdateCard = %v, want INVALID_REQUEST", err)
	}
	conn.cut()
	if f := p.accept().register(true); f.Agent.Description != "new" || f.ResumeToken != "token-1" {
		t.Fatalf("it comes back with %s", f.Append(nil))
	}
}

func TestAReplyThatIsNoObjectNamesItsRequestBesideItself(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	conn.raw(`{"type":"message","from":"you","payload":{"request_id":"r-1"},"seq":1}`)
	m := next()
	for _, payload := range []string{`"text"`, `[1, 2]`, `null`} {
		replied := errOf(func() error { return m.Reply(await.Context(t), raw(payload)) })
		f := conn.expect("reply")
		if string(f.Payload) != payload || f.RequestID != "r-1" {
			t.Fatalf("client sent %s", f.Append(nil))
		}
		conn.stored(f)
		if err := replied(t); err != nil {
			t.Fatal(err)
		}
	}
}
