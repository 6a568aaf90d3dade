package party

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// lossScenes are agents that are lost and do not come back in their grace, which is short.
var lossScenes = []scenario{
	{"a sender that is lost in the midst of a stream aborts it, once", Streams | Enters, Streams, lostMidway},
	{"who is lost in the midst of its answer aborts it", Asks, Pours | Enters, lostAnswering},
	{"a sender whose edge dies and that stays away aborts its stream, once", Streams | Enters, Streams, lostWithItsEdge},
	{"the edge of who asked dies: the answer waits for it", Asks | Moves, Answers, askersEdgeDies},
	{"who is lost is listed no more, and its mail waits", Sends | Looks | Mails, Enters | Waits, lostAndFound},
}

func lostMidway(s *scene) {
	anna, bob := s.pair()
	f := anna.opens(bob, "s")
	f.goes("one")
	anna.Drop()
	s.abortedOnce(f)
}

// abortedOnce hears that a stream of anna's was aborted, and then nothing before another one.
func (s *scene) abortedOnce(f *flow) {
	s.Helper()
	f.aborted(agora.StreamAborted)
	anna := s.enters(s.Sender, 2, "anna")
	g := anna.opens(f.to, "s")
	g.goes("anew")
	g.ends()
}

func lostAnswering(s *scene) {
	anna, bob := s.pair()
	f := bob.pours(anna, anna.asks(bob, "r-1", "how?"))
	f.goes("so")
	bob.Drop()
	f.aborted(agora.StreamAborted)
}

func lostWithItsEdge(s *scene) {
	k := s.AddEdge()
	anna, bob := s.enters(s.Sender, k, "anna"), s.enters(s.Receiver, 1, "bob")
	f := anna.opens(bob, "s")
	f.goes("one")
	s.kill(k, anna)
	s.abortedOnce(f)
}

func lostAndFound(s *scene) {
	anna, bob := s.pair()
	bob.Drop()
	await.True(s.T, "bob is listed no more", func() bool {
		_, err := anna.Look(s.context(), "bob")
		return err != nil && agora.AsError(err).Code == agora.AgentNotFound
	})
	anna.sends("bob", "where are you?")
	bob = s.enters(s.Receiver, 2, "bob")
	bob.gets("anna", "where are you?")
	anna.silent(bob)
}

// askersEdgeDies proves nothing of what bob is told meanwhile.
func askersEdgeDies(s *scene) {
	k := s.AddEdge()
	anna, bob := s.enters(s.Sender, k, "anna"), s.enters(s.Receiver, 1, "bob")
	q := anna.asks(bob, "r-1", "hello?")
	s.kill(k, anna)
	bob.says(answer(q, "hi"))
	anna.returns(2)
	anna.answered("bob", "r-1", "hi")
}
