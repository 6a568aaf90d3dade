package party

import (
	"fmt"

	"github.com/agora-relay/agora"
)

// askScenes are requests and their answers.
var askScenes = []scenario{
	{"a request is answered whole", Asks, Answers, answeredWhole},
	{"a request is answered by a stream, heard as it comes", Asks, Pours, answeredInPieces},
	{"a streamed answer is heard in the pieces in which it was said, empty ones included", Asks, Pours | Pieces, answeredPieces},
	{"requests are answered in any order", Asks, Answers, outOfOrder},
	{"a question to an agent that nobody knows is refused", Asks, 0, askNobody},
	{"a large answer passes whole", Asks, Answers, largeAnswer},
	{"an answer of somebody else is not that of the agent that was asked", Asks, Answers, answeredByAnother},
	{"an agent answers each of those that ask it, whatever names they give", Asks, Answers, manyAsk},
	{"who asked gives a streamed answer up: who answers is told", Asks | Cancels, Pours, answerGivenUp},
	{"who asked gives its question up before the answer begins: who was asked is told", Asks | Retracts, Answers, questionGivenUp},
	{"who leaves in the midst of its answer aborts it, once", Asks, Pours | Enters, answererLeft},
	{"a question that is too large is refused, and the next one answered", Asks | Bounded, Answers, questionTooLarge},
}

// asks asks a question, and returns it as it was heard.
func (a *agent) asks(b *agent, name, text string) Word {
	a.s.Helper()
	a.says(question(b.id, name, text))
	return b.hears(question(a.id, "", text))
}

// answered hears the whole answer to a request of its own.
func (a *agent) answered(by agora.AgentID, name, text string) {
	a.s.Helper()
	w := a.hears(answer(Word{Peer: by}, text))
	if w.Request != name {
		a.s.Fatalf("%s hears %s, want the answer to %q", a.id, w, name)
	}
}

// pours begins a streamed answer to a question that was heard.
func (b *agent) pours(a *agent, q Word) *flow {
	b.s.Helper()
	return b.begins(a, Word{Kind: agora.Reply, Stream: "answer", Request: q.Request})
}

func answeredWhole(s *scene) {
	anna, bob := s.pair()
	for i := range 3 {
		name := fmt.Sprint("r-", i)
		q := anna.asks(bob, name, "how many?")
		bob.says(answer(q, "42"))
		anna.answered("bob", name, "42")
	}
}

func answeredInPieces(s *scene) {
	anna, bob := s.pair()
	anna.pieces(bob, "so", " and\r\nso", "é😀")
	q := anna.asks(bob, "r-2", "and?") // nothing came before its answer
	bob.says(answer(q, "done"))
	anna.answered("bob", "r-2", "done")
}

// pieces has bob answer in pieces, each heard before the next one is said.
func (a *agent) pieces(bob *agent, texts ...string) {
	a.s.Helper()
	f := bob.pours(a, a.asks(bob, "r-1", "how?"))
	for _, text := range texts {
		f.goes(text)
	}
	f.ends()
}

func answeredPieces(s *scene) {
	anna, bob := s.pair()
	anna.pieces(bob, "so", "", " and\r\n", "", "é😀", "")
}

func outOfOrder(s *scene) {
	anna, bob := s.pair()
	var asked []Word
	for i := range 3 {
		asked = append(asked, anna.asks(bob, fmt.Sprint("r-", i), fmt.Sprint("question ", i)))
	}
	for _, i := range []int{1, 2, 0} {
		bob.says(answer(asked[i], fmt.Sprint("answer ", i)))
		anna.answered("bob", fmt.Sprint("r-", i), fmt.Sprint("answer ", i))
	}
}

func askNobody(s *scene) {
	anna := s.enters(s.Sender, 0, "anna")
	anna.refused(question("nobody", "r-1", "hello?"), agora.AgentNotFound)
}

func largeAnswer(s *scene) {
	anna, bob := s.pair()
	q := anna.asks(bob, "r-1", "all of it?")
	said := make([]byte, 500_000)
	for i := range said {
		said[i] = 'a' + byte(i%26)
	}
	bob.says(answer(q, string(said)))
	anna.answered("bob", "r-1", string(said))
}

func answeredByAnother(s *scene) {
	anna, bob := s.pair()
	carl := s.enters(s.Receiver, 2, "carl")
	q := anna.asks(bob, "r-1", "who are you?")
	_ = carl.Say(s.context(), answer(q, "carl")) // it may be refused, or be heard as what it is
	bob.says(answer(q, "bob"))
	for {
		w := anna.next()
		switch {
		case w.Peer == "bob" && w.Request == "r-1" && w.said() == "bob":
			return
		case w.Peer != "carl" || w.Part <= agora.Start && w.said() != "carl":
			s.Fatalf("anna hears %s", w)
		}
	}
}

func manyAsk(s *scene) {
	anna, bob := s.pair()
	carl := s.enters(s.Sender, 2, "carl")
	annas, carls := anna.asks(bob, "r-1", "anna?"), carl.asks(bob, "r-1", "carl?")
	bob.says(answer(carls, "carl"))
	bob.says(answer(annas, "anna"))
	anna.answered("bob", "r-1", "anna")
	carl.answered("bob", "r-1", "carl")
}

func questionGivenUp(s *scene) {
	anna, bob := s.pair()
	heard := anna.asks(bob, "r-1", "how?")
	anna.says(Word{Part: agora.Cancel, Peer: "bob", Request: "r-1"})
	w := bob.next()
	if over := w.Part == agora.Abort || w.Part == agora.Cancel; !over || w.Peer != "anna" || w.Request != heard.Request && w.Stream != heard.Request {
		s.Errorf("bob hears %s, want that %q was given up", w, heard.Request)
	}
	q := anna.asks(bob, "r-2", "and?")
	bob.says(answer(q, "done"))
	anna.answered("bob", "r-2", "done")
}

func answerGivenUp(s *scene) {
	anna, bob := s.pair()
	f := bob.pours(anna, anna.asks(bob, "r-1", "how?"))
	f.goes("so")
	anna.says(Word{Part: agora.Cancel, Peer: "bob", Stream: f.heard, Request: "r-1"})
	if w := bob.hears(Word{Part: agora.Cancel, Peer: "anna"}); w.Stream != f.name && w.Stream != f.answers {
		s.Errorf("bob hears %s, want that %q was given up", w, f.name)
	}
	_ = bob.Say(s.context(), f.word(agora.Chunk, "late"))
	q := anna.asks(bob, "r-2", "and?") // nothing came before its answer
	bob.says(answer(q, "done"))
	anna.answered("bob", "r-2", "done")
}

func answererLeft(s *scene) {
	anna, bob := s.pair()
	f := bob.pours(anna, anna.asks(bob, "r-1", "how?"))
	f.goes("so")
	bob.Leave()
	f.aborted(agora.StreamAborted)
	bob = s.enters(s.Receiver, 2, "bob")
	q := anna.asks(bob, "r-2", "and?")
	bob.says(answer(q, "done"))
	anna.answered("bob", "r-2", "done")
}

func questionTooLarge(s *scene) {
	anna, bob := s.pair()
	big := make([]byte, s.Sender.TooMuch)
	for i := range big {
		big[i] = 'x'
	}
	anna.refused(question("bob", "r-1", string(big)), agora.MessageTooLarge)
	q := anna.asks(bob, "r-2", "small?")
	bob.says(answer(q, "yes"))
	anna.answered("bob", "r-2", "yes")
}
