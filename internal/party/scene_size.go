package party

import (
	"fmt"
	"strings"

	"github.com/agora-relay/agora"
)

// sizeScenes are about what is as large as it may be. Adapters of doors whose frames are bounded hold each frame that
// comes against limits.frame.
var sizeScenes = []scenario{
	{"what is said at the bound of a frame comes within it, or is refused", Sends, Sends | Mails, saidAtTheBound},
	{"what is asked at the bound of a frame comes within it, or is refused", Asks | Mails, Answers, askedAtTheBound},
}

const (
	mostFrame = 1 << 20   // limits.frame of the edges of the suite
	lowBound  = 512 << 10 // the same where sizes are the subject: below what doors take in one request
)

// within reports a frame that came and is larger than one may be.
func (s *Seat) within(size int) {
	if most := s.Cluster.Node(s.Edge).Config().Limits.Frame; size > most {
		s.T.Errorf("%s is sent a frame of %d bytes, larger than %d", s.ID, size, most)
	}
}

// atTheBound are texts that take about as much as a frame has room for: plain ones, one that takes more in JSON than it
// has bytes, and one that is just too large.
func atTheBound() (texts []string) {
	for _, less := range []int{1024, 512, 300, 100} {
		texts = append(texts, strings.Repeat("x", lowBound-less))
	}
	return append(texts, strings.Repeat("\"", lowBound/2), strings.Repeat("\x01", lowBound/5))
}

// took has the agent say a word, and reports whether it was taken. It may be refused as too large.
func (a *agent) took(w Word) bool {
	a.s.Helper()
	err := a.Say(a.s.context(), w)
	if err != nil {
		a.s.code(string(a.id)+" says much", err, agora.MessageTooLarge)
	}
	return err == nil
}

func saidAtTheBound(s *scene) {
	anna, bob := s.pair()
	told := s.Sender.Can&Mails != 0
	for _, said := range atTheBound() {
		if !anna.took(plain("bob", said)) {
			continue
		}
		if !told { // what it says comes in parts, which may be refused later, and among those of others
			anna.sends("bob", "next")
			for bob.next().said() != "next" {
			}
			continue
		}
		w := bob.whole()
		if bob.letsGo(w); w.said() != said {
			s.Errorf("a text of %d bytes came as %d others", len(said), len(w.said()))
		}
	}
	if told {
		anna.silent(bob)
	}
}

func askedAtTheBound(s *scene) {
	anna, bob := s.pair()
	for i, said := range atTheBound() {
		if !anna.took(question("bob", fmt.Sprint("r-", i), said)) {
			continue
		}
		q := bob.whole()
		if q.said() != said {
			s.Errorf("a text of %d bytes came as %d others", len(said), len(q.said()))
		}
		bob.says(answer(q, "yes"))
		anna.hears(answer(Word{Peer: "bob"}, "yes"))
	}
}
