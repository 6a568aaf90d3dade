package iat_test

import (
	"testing"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
)

func TestTheFirstMailOfWhoRegisteredIsNoRedelivery(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	register := said{id: "r", kind: "request", from: "bob", payload: `{"action":"register"}`}
	if a := s.ask(t, post(0, register.String())); a.status != 200 {
		t.Fatalf("registered: %d %s", a.status, a.body)
	}
	mail := said{id: "m", kind: "notification", from: "al", to: "bob", payload: `{"n":1}`}.String()
	if a := s.ask(t, post(1, mail)); a.status != 202 {
		t.Fatalf("sent: %d %s", a.status, a.body)
	}
	s.downlink(t, 1, "bob").expect(mail)
}

func TestStreamsOfWhoHasNoDownlinkAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	s.socket(t, 1, "bob")
	start := said{id: "s", kind: "request", from: "al", to: "bob", metadata: `"stream":true`}
	s.ask(t, post(0, start.String())).refused(t, wrong{Code: agora.InvalidRequest, Parent: "s", To: "al"})
	chunk := said{id: "c", kind: "chunk", parent: "s", from: "al", to: "bob"}
	s.ask(t, post(0, chunk.String())).refused(t, wrong{Code: agora.StreamNotFound, Parent: "c", To: "al"})
}

func TestACloseIsAnsweredByOne(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	c, answer, err := websocket.DefaultDialer.DialContext(t.Context(), s.socketURL(0)+"?agent=bob", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answer.Body.Close()
	end := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if err := c.WriteMessage(websocket.CloseMessage, end); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("a socket that was closed with 1000 ends with %v", err)
	}
}
