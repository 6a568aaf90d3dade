package iat_test

import (
	"testing"

	"github.com/agora-relay/agora"
)

func TestARefusedFirstChunkIsAnsweredWhenItIsSaidAgain(t *testing.T) {
	t.Parallel()
	s := patient(t)
	bob, dan := s.socket(t, 0, "bob"), s.downlink(t, 1, "dan")
	chunk := func(id, from, to string) string {
		return said{id: id, kind: "chunk", parent: "q", from: from, to: to, payload: `{"text":"` + id + `"}`}.String()
	}
	for range 2 {
		bob.Send(chunk("1", "bob", "al"))
		isRefused(t, bob, wrong{Code: agora.AgentNotFound, Parent: "1"})
		s.ask(t, post(2, chunk("1", "dan", "al"))).refused(t, wrong{Code: agora.AgentNotFound, Parent: "1", To: "dan"})
	}
	al := s.socket(t, 2, "al")
	for _, id := range []string{"1", "2"} {
		bob.Send(chunk(id, "bob", "al"))
		al.Expect(chunk(id, "bob", "al"))
		s.ask(t, post(0, chunk(id, "dan", "al"))).is(t, 202, "")
		al.Expect(chunk(id, "dan", "al"))
	}
	goesOn(bob)
	dan.close()
}

func TestARefusedFirstChunkOpensNoStreamThatLacksAnother(t *testing.T) {
	t.Parallel()
	s := patient(t)
	bob := s.socket(t, 0, "bob")
	chunk := func(id string) string {
		return said{id: id, kind: "chunk", parent: "q", from: "bob", to: "al", payload: `{"text":"` + id + `"}`}.String()
	}
	bob.Send(chunk("1"), chunk("2"))
	isRefused(t, bob, wrong{Code: agora.AgentNotFound, Parent: "1"})
	al := s.socket(t, 2, "al")
	for range 2 {
		bob.Send(chunk("1"))
		isRefused(t, bob, wrong{Code: agora.StreamNotFound, Parent: "1"}) // as the second chunk was dropped
	}
	bob.Send(said{id: "n", kind: "notification", from: "bob", to: "al"}.String())
	al.Expect(`{"header":{"msg_id":"n","type":"notification","from":"bob","to":"al"}}`)
}
