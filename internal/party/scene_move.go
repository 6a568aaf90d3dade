package party

import (
	"fmt"

	"github.com/agora-relay/agora"
)

// moveScenes are agents that lose their connection, and come back to another edge.
var moveScenes = []scenario{
	{"what is sent to an agent that is away is heard when it is back", Sends | Mails, Waits, awayAndBack},
	{"a stream may begin and end while its receiver is away", Streams | Mails, Streams | Waits, awayForAStream},
	{"a receiver that moves on and on hears everything once, in order", Streams, Streams | Moves, restlessReceiver},
	{"a sender that moves on and on goes on with its stream", Streams | Moves, Streams, restlessSender},
	{"a stream that was given up while its sender was away is over when it is back", Streams | Moves, Streams | Cancels, cancelledWhileAway},
	{"an agent that was asked answers from another edge", Asks, Answers | Moves, answersElsewhere},
	{"a streamed answer goes on from another edge", Asks, Pours | Moves, poursElsewhere},
}

func awayAndBack(s *scene) {
	anna, bob := s.pair()
	anna.sends("bob", "zero")
	bob.gets("anna", "zero")
	bob.Drop()
	texts := []string{"one", "two", "three", "four", "five"}
	for _, text := range texts {
		anna.sends("bob", text)
	}
	bob.returns(2)
	bob.getsAll("anna", texts...)
	anna.silent(bob)
}

func awayForAStream(s *scene) {
	anna, bob := s.pair()
	bob.Drop()
	f := &flow{from: anna, to: bob, name: "s"}
	anna.says(Word{Part: agora.Start, Peer: "bob", Stream: "s", Body: text("begins")})
	for i := range 3 {
		f.says(agora.Chunk, fmt.Sprint(i))
	}
	f.says(agora.End, "")
	bob.returns(2)
	f.heard = bob.hears(Word{Part: agora.Start, Peer: "anna", Body: text("begins")}).Stream
	for i := range 3 {
		f.hears(agora.Chunk, fmt.Sprint(i))
	}
	f.hears(agora.End, "")
}

func restlessReceiver(s *scene) {
	anna, bob := s.pair()
	f := anna.opens(bob, "s")
	n := 0
	for k := range 4 {
		f.goes(fmt.Sprint(n))
		bob.Drop()
		for range 3 {
			n++
			f.says(agora.Chunk, fmt.Sprint(n))
		}
		bob.returns((k + 2) % 3)
		for i := n - 2; i <= n; i++ {
			f.hears(agora.Chunk, fmt.Sprint(i))
		}
		n++
	}
	f.ends()
}

func restlessSender(s *scene) {
	anna, bob := s.pair()
	f := anna.opens(bob, "s")
	for k := range 4 {
		f.says(agora.Chunk, fmt.Sprint("before ", k))
		anna.Drop()
		anna.returns((k + 2) % 3)
		f.hears(agora.Chunk, fmt.Sprint("before ", k))
		f.goes(fmt.Sprint("after ", k))
	}
	f.ends()
	if s.Sender.Can&Sends != 0 {
		anna.silent(bob)
	}
}

func cancelledWhileAway(s *scene) {
	anna, bob := s.pair()
	f := anna.opens(bob, "s")
	f.goes("one")
	anna.Drop()
	bob.says(Word{Part: agora.Cancel, Peer: "anna", Stream: f.heard})
	anna.returns(2)
	if w := anna.hears(Word{Part: agora.Cancel, Peer: "bob"}); w.Stream != "s" {
		s.Errorf("anna hears %s, want that \"s\" was given up", w)
	}
	f.over()
}

func answersElsewhere(s *scene) {
	anna, bob := s.pair()
	q := anna.asks(bob, "r-1", "where are you?")
	bob.Drop()
	bob.returns(2)
	bob.says(answer(q, "elsewhere"))
	anna.answered("bob", "r-1", "elsewhere")
}

func poursElsewhere(s *scene) {
	anna, bob := s.pair()
	f := bob.pours(anna, anna.asks(bob, "r-1", "how?"))
	f.goes("so")
	for k := range 3 {
		bob.Drop()
		bob.returns((k + 2) % 3)
		f.goes(fmt.Sprint("and so ", k))
	}
	f.ends()
}
