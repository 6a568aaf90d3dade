package party

import (
	"fmt"

	"github.com/agora-relay/agora"
)

// spaceScenes are spaces, where both doors have them.
var spaceScenes = []scenario{
	{"what a member publishes reaches all members in one order, itself included", Rooms, Rooms, published},
	{"who is no member publishes nothing", Rooms, Rooms, membersOnly},
	{"a member that is away hears the events when it is back", Rooms, Rooms | Moves, memberAway},
}

// event is what is published, or heard of it.
func event(peer agora.AgentID, s string) Word {
	return Word{Kind: agora.Event, Space: "general", Peer: peer, Body: text(s)}
}

// joins has agents enter the space.
func (s *scene) joins(all ...*agent) {
	s.Helper()
	for _, a := range all {
		if err := a.Join(s.context(), "general"); err != nil {
			s.Fatalf("%s can't join: %v", a.id, err)
		}
	}
}

func published(s *scene) {
	anna, bob := s.pair()
	carl := s.enters(s.Receiver, 2, "carl")
	s.joins(anna, bob, carl)
	for i := range 5 {
		for _, who := range []*agent{anna, bob} {
			who.says(event("", fmt.Sprint(i)))
			for _, a := range []*agent{anna, bob, carl} {
				a.hears(event(who.id, fmt.Sprint(i)))
			}
		}
	}
}

func membersOnly(s *scene) {
	anna, bob := s.pair()
	s.joins(bob)
	anna.refused(event("", "let me in"), agora.Forbidden)
	s.joins(anna)
	anna.says(event("", "here I am"))
	bob.hears(event("anna", "here I am"))
}

func memberAway(s *scene) {
	anna, bob := s.pair()
	s.joins(anna, bob)
	anna.says(event("", "one"))
	bob.hears(event("anna", "one"))
	bob.Drop()
	anna.says(event("", "two"))
	bob.returns(2)
	anna.says(event("", "three"))
	bob.hears(event("anna", "two"))
	bob.hears(event("anna", "three"))
}
