package party

import (
	"fmt"
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
	w, heard := s.late(anna, bob, func(name string) Word { return Word{Part: agora.Start, Peer: "bob", Stream: name} })
	(&flow{from: anna, to: bob, name: w.Stream, heard: heard.Stream}).over()
}

func lateAnswer(s *scene) {
	anna, bob := s.pair()
	s.late(anna, bob, func(name string) Word { return Word{Peer: "bob", Request: name} })
}

// late has anna begin what is not over in time, and each side hear so. Where the machine was too slow for bob to hear
// of it before, she begins another one, with more time.
func (s *scene) late(anna, bob *agent, begins func(name string) Word) (w, heard Word) {
	s.Helper()
	for deadline := soon; ; deadline *= 4 {
		name := fmt.Sprint("within ", deadline)
		w = begins(name)
		w.Deadline, w.Body = deadline, text(name)
		err := anna.Say(s.context(), w)
		if err != nil && agora.AsError(err).Code == agora.Timeout {
			continue
		}
		if err != nil {
			s.Fatalf("anna says %s: %v", w, err)
		}
		if w := anna.hears(Word{Part: agora.Abort, Peer: "bob", Code: agora.Timeout}); w.Stream != name && w.Request != name {
			s.Fatalf("anna hears %s, want it of %q", w, name)
		}
		if heard, in := s.heardLate(anna, bob, w); in {
			return w, heard
		}
	}
}

// heardLate has bob hear what had a deadline, and that it has passed; in is false where he hears a later question and
// nothing of both.
func (s *scene) heardLate(anna, bob *agent, late Word) (heard Word, in bool) {
	s.Helper()
	later := "later than " + late.said()
	anna.says(question("bob", later, later))
	var q Word
	for told := false; q.Peer == "" || q.Part == agora.Start || in && !told; {
		w := bob.next()
		switch {
		case w.Peer != "anna":
			s.Fatalf("bob hears %s", w)
		case w.Part <= agora.Start && w.said() == late.said():
			heard, in = w, true
		case w.Part <= agora.Start && w.said() == later:
			q = w
		case w.Part == agora.End && q.Peer != "" && w.Stream == q.Stream:
			q.Part = agora.Whole
		case w.Part == agora.Abort && in && (w.Stream == heard.Stream && w.Stream != "" || w.Request == heard.Request && w.Request != ""):
			// Anyone who calls resets the call as its time passes, and the edge may see that before it is so late by
			// its own clock.
			if told = true; w.Code != agora.Timeout && !(s.live() && w.givesUp(Word{Part: agora.Cancel, Peer: "anna"})) {
				s.Errorf("bob hears %s, want that time has passed", w)
			}
		}
	}
	bob.says(answer(q, "yes"))
	anna.answered("bob", later, "yes")
	return heard, in
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
