package party

import (
	"sync"

	"github.com/agora-relay/agora"
)

// edgeScenes are edges that go, while agents' grace is long.
var edgeScenes = []scenario{
	{"the edge of a receiver dies: it hears the rest at another one, once", Streams, Streams | Moves, receiversEdgeDies},
	{"the edge of a sender dies: its stream goes on at another one", Streams | Moves, Streams, sendersEdgeDies},
	{"the edge of who was asked dies: it answers from another one", Asks, Answers | Moves, askedEdgeDies},
	{"an edge drains: who is there goes on elsewhere, and nothing is lost", Streams | Moves, Streams | Moves, edgeDrains},
}

// kill has an edge die, with the connections of those who are there.
func (s *scene) kill(k int, there ...*agent) {
	s.Helper()
	s.LapseEdge(k)
	for _, a := range there {
		a.Drop() // where the adapter has no connection that was cut
	}
}

func receiversEdgeDies(s *scene) {
	k := s.AddEdge()
	anna, bob := s.enters(s.Sender, 0, "anna"), s.enters(s.Receiver, k, "bob")
	f := anna.opens(bob, "s")
	f.goes("one")
	s.kill(k, bob)
	f.says(agora.Chunk, "two")
	bob.returns(2)
	f.says(agora.Chunk, "three")
	f.hears(agora.Chunk, "two")
	f.hears(agora.Chunk, "three")
	f.ends()
}

func sendersEdgeDies(s *scene) {
	k := s.AddEdge()
	anna, bob := s.enters(s.Sender, k, "anna"), s.enters(s.Receiver, 1, "bob")
	f := anna.opens(bob, "s")
	f.goes("one")
	s.kill(k, anna)
	anna.returns(2)
	f.goes("two")
	f.ends()
}

func askedEdgeDies(s *scene) {
	k := s.AddEdge()
	anna, bob := s.enters(s.Sender, 0, "anna"), s.enters(s.Receiver, k, "bob")
	q := anna.asks(bob, "r-1", "where are you?")
	s.kill(k, bob)
	bob.returns(2)
	bob.says(answer(q, "elsewhere"))
	anna.answered("bob", "r-1", "elsewhere")
}

func edgeDrains(s *scene) {
	k := s.AddEdge()
	anna, bob := s.enters(s.Sender, k, "anna"), s.enters(s.Receiver, k, "bob")
	f := anna.opens(bob, "s")
	f.goes("one")
	f.says(agora.Chunk, "two")
	var draining sync.WaitGroup
	draining.Go(func() { s.StopEdge(k) })
	anna.lost()
	heard := bob.lost(Word{Part: agora.Chunk, Peer: "anna", Body: []byte("two")})
	anna.returns(0)
	bob.returns(1)
	if heard == 0 {
		f.hears(agora.Chunk, "two")
	}
	f.goes("three")
	f.ends()
	draining.Wait()
}
