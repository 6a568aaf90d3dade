package party

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// enterScenes are who an agent is, and who may be it.
var enterScenes = []scenario{
	{"who has entered hears what is sent to it, and from whom", Sends, Enters | Sends, entered},
	{"who has entered is listed with its dialect and card, and who has left is not", Lists, Enters, listed},
	{"an id is one agent's, by whatever door the next one comes", Enters, Enters | Sends, enteredTwice},
	{"nobody enters as an agent that it may not be", Enters, 0, enteredAsAnother},
	{"nobody enters without credentials", Enters, 0, enteredAsNobody},
	{"who speaks is who has entered, whatever it writes", Sends, Sends, spoken},
	{"what the rules forbid is refused, and the agent goes on", Sends, Enters | Sends, forbidden},
	{"a question that the rules forbid is refused", Asks, Enters | Answers, questionForbidden},
	{"an agent that has left is written to, and hears it when it enters again", Sends | Mails, Enters | Waits, left},
}

func entered(s *scene) {
	anna, bob := s.pair()
	anna.sends("bob", "hello")
	bob.gets("anna", "hello")
	anna.silent(bob)
}

func listed(s *scene) {
	anna := s.enters(s.Sender, 0, "anna")
	_, err := anna.Look(s.context(), "bob")
	s.code("anna looks for bob", err, agora.AgentNotFound)
	p, err := s.Receiver.Enter(s.context(), Seat{T: s.T, Cluster: s.Cluster, Edge: 1, ID: "bob", Token: s.tenant, Skills: []agora.Skill{{Name: "cook"}}})
	if err != nil {
		s.Fatal(err)
	}
	var got agora.Agent
	var can []agora.Skill // or tools, as the dialect calls them
	await.True(s.T, "bob is listed with what it can do, which it may say behind its name", func() bool {
		got, err = anna.Look(s.context(), "bob")
		can = append(got.Skills, got.Tools...)
		return err == nil && len(can) > 0
	})
	if got.ID != "bob" || len(can) != 1 || can[0].Name != "cook" {
		s.Errorf("bob is listed as %+v, want its skill", got)
	}
	if s.Sender.Can&Looks != 0 && (got.DialectName() != s.Receiver.Dialect || got.Status != agora.Online) {
		s.Errorf("bob is listed as %+v, want its dialect %q", got, s.Receiver.Dialect)
	}
	p.Leave()
	await.True(s.T, "bob is listed no more", func() bool {
		_, err := anna.Look(s.context(), "bob")
		return err != nil && agora.AsError(err).Code == agora.AgentNotFound
	})
}

func enteredTwice(s *scene) {
	bob, carl := s.enters(s.Receiver, 1, "bob"), s.enters(s.Receiver, 2, "carl")
	for k := range 3 {
		_, err := s.try(s.Sender, k, "bob", "")
		s.code("another bob enters", err, agora.AgentExists)
	}
	carl.sends("bob", "still there?")
	bob.gets("carl", "still there?")
}

func enteredAsAnother(s *scene) {
	_, err := s.try(s.Sender, 0, "anna", "limited")
	s.code("a guest enters as anna", err, agora.Forbidden)
	if _, err := s.try(s.Sender, 0, "guest-1", "limited"); err != nil {
		s.Errorf("a guest enters as one: %v", err)
	}
}

func enteredAsNobody(s *scene) {
	_, err := s.Sender.Enter(s.context(), Seat{T: s.T, Cluster: s.Cluster, Edge: 0, ID: "anna"})
	s.code("anna enters without credentials", err, agora.Unauthorized)
}

func spoken(s *scene) {
	anna, bob := s.pair()
	w := plain("bob", "I am carl")
	w.As = "carl"
	if err := anna.Say(s.context(), w); err == nil {
		bob.gets("anna", "I am carl")
	} else {
		s.code("anna says she is carl", err, agora.Forbidden)
	}
	anna.silent(bob)
}

// shy has anna enter who may not address bob, but carl.
func (s *scene) shy() (anna, bob, carl *agent) {
	s.Helper()
	anna, err := s.try(s.Sender, 0, "anna", "shy")
	if err != nil {
		s.Fatal(err)
	}
	return anna, s.enters(s.Receiver, 1, "bob"), s.enters(s.Receiver, 2, "carl")
}

func forbidden(s *scene) {
	anna, bob, carl := s.shy()
	anna.refused(plain("bob", "psst"), agora.Forbidden)
	anna.sends("carl", "hello")
	carl.gets("anna", "hello")
	carl.silent(bob)
}

func questionForbidden(s *scene) {
	anna, _, carl := s.shy()
	anna.refused(question("bob", "r-1", "psst?"), agora.Forbidden)
	anna.says(question("carl", "r-2", "hello?"))
	q := carl.hears(question("anna", "", "hello?"))
	carl.says(answer(q, "hi"))
	anna.answered("carl", "r-2", "hi")
}

func left(s *scene) {
	anna, bob := s.pair()
	bob.Leave()
	for _, text := range []string{"one", "two", "three"} {
		anna.sends("bob", text)
	}
	bob = s.enters(s.Receiver, 2, "bob")
	bob.getsAll("anna", "one", "two", "three")
	anna.silent(bob)
}
