package party

import (
	"time"

	"github.com/agora-relay/agora"
)

// deadlineScenes are streams and requests that may not last.
var deadlineScenes = []scenario{
	{"a stream that is not at its end in time is over for both", Streams | Deadlines, Streams, lateStream},
	{"a request without an answer in time is over for both", Asks | Deadlines, Answers, lateAnswer},
	{"a request with a deadline is answered in time", Asks | Deadlines, Answers, timelyAnswer},
	{"a deadline is heard as the time that is left", Asks | Deadlines, Answers | Deadlines, timeLeft},
}

// soon is a deadline that passes in the course of a test.
const soon = time.Second

func lateStream(s *scene) {
	anna, bob := s.pair()
	f := anna.begins(bob, Word{Stream: "s", Deadline: soon})
	f.aborted(agora.Timeout)
	if w := anna.hears(Word{Part: agora.Abort, Peer: "bob", Code: agora.Timeout}); w.Stream != "s" {
		s.Errorf("anna hears %s, want it of her stream", w)
	}
	f.over()
}

func lateAnswer(s *scene) {
	anna, bob := s.pair()
	q := question("bob", "r-1", "quick?")
	q.Deadline = soon
	err := anna.Say(s.context(), q)
	for err != nil && agora.AsError(err).Code == agora.Timeout { // the machine was too slow to ask in time
		q.Request, q.Deadline = q.Request+"+", 4*q.Deadline
		err = anna.Say(s.context(), q)
	}
	if err != nil {
		s.Fatalf("anna asks: %v", err)
	}
	heard := bob.next()
	for heard.Part == agora.Abort && q.Request != "r-1" { // of what was not asked in time
		heard = bob.next()
	}
	if !heard.says(question("anna", "", "quick?")) {
		s.Fatalf("bob hears %s, want the question", heard)
	}
	if w := anna.hears(Word{Part: agora.Abort, Peer: "bob", Code: agora.Timeout}); w.Request != q.Request {
		s.Errorf("anna hears %s, want it of %q", w, q.Request)
	}
	if w := bob.hears(Word{Part: agora.Abort, Peer: "anna", Code: agora.Timeout}); w.Request != heard.Request {
		s.Errorf("bob hears %s, want it of %q", w, heard.Request)
	}
}

func timelyAnswer(s *scene) {
	const enough = 2 * time.Minute // on a busy machine too
	anna, bob := s.pair()
	q := question("bob", "r-1", "quick?")
	q.Deadline = enough
	anna.says(q)
	bob.says(answer(bob.hears(question("anna", "", "quick?")), "yes"))
	anna.answered("bob", "r-1", "yes")
}

func timeLeft(s *scene) {
	const long, exact = time.Hour, time.Minute // so well do edges know the servers' time, whatever their own clock says
	anna, bob := s.pair()
	begin := time.Now()
	q := question("bob", "r-1", "when?")
	q.Deadline = long
	anna.says(q)
	w := bob.hears(question("anna", "", "when?"))
	if w.Deadline > long+exact || w.Deadline < long-time.Since(begin)-exact {
		s.Errorf("%v are left, want at most %v", w.Deadline, long)
	}
}
