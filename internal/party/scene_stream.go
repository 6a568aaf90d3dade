package party

import (
	"fmt"

	"github.com/agora-relay/agora"
)

// streamScenes are streams, and how they are given up.
var streamScenes = []scenario{
	{"a stream is heard as it comes, before its end", Streams, Streams, asItComes},
	{"chunks keep their text, empty ones and line ends included", Streams, Streams, chunkTexts},
	{"streams of one agent are told apart, and keep their order", Streams, Streams, interleaved},
	{"streams that cross are told apart, though they have one name", Streams, Streams, crossed},
	{"a name may be used again once its stream has ended", Streams, Streams, namedAgain},
	{"a part of a stream that never began is refused", Streams | Heads, Streams, neverBegan},
	{"a sender gives its stream up: the receiver is told, and nothing more of it comes", Streams | Cancels, Streams, cancelledBySender},
	{"a receiver gives a stream up: the sender is told, and nothing more of it comes", Streams, Streams | Cancels, cancelledByReceiver},
	{"giving up one stream leaves the others alone", Streams | Cancels, Streams | Cancels, cancelledAlone},
	{"a sender that leaves in the midst of a stream aborts it, once", Streams | Enters, Streams, leftMidway},
}

func asItComes(s *scene) {
	anna, bob := s.pair()
	f := anna.opens(bob, "s")
	for i := range 5 {
		f.goes(fmt.Sprint(i))
	}
	f.ends()
	f.from.silent(bob)
}

func chunkTexts(s *scene) {
	anna, bob := s.pair()
	f := anna.opens(bob, "s")
	for _, text := range []string{
		"", "a", "", " ", "  two before and one behind ", "\n", "\r", "\r\n", "\n\n", "one\r\ntwo\rthree\n", "\t\"quotes\" \\ / back", "é e\u0301 😀 👩‍👩‍👧", "\u2028\u2029\ufeff\u00a0",
		"data: x\n\nevent: end", "null", `{"text":"no object"}`, "<script>&amp;", "\u0001\u001f\u007f", "",
	} {
		f.goes(text)
	}
	f.ends()
}

func interleaved(s *scene) {
	anna, bob := s.pair()
	var all []*flow
	for i := range 3 {
		all = append(all, anna.opens(bob, fmt.Sprint("s-", i)))
	}
	for i := range 4 {
		for k, f := range all {
			f.says(agora.Chunk, fmt.Sprint(k, " ", i))
		}
	}
	for _, f := range all {
		f.says(agora.End, "")
	}
	heard := map[string][]string{} // by stream; order among streams is nobody's promise
	for range 3 * 5 {
		w := bob.next()
		heard[w.Stream] = append(heard[w.Stream], fmt.Sprint(w.Part, " ", w.said()))
	}
	for k, f := range all {
		var want []string
		for i := range 4 {
			want = append(want, fmt.Sprint(agora.Chunk, " ", k, " ", i))
		}
		want = append(want, fmt.Sprint(agora.End, " "))
		if got := heard[f.heard]; fmt.Sprint(got) != fmt.Sprint(want) {
			s.Errorf("stream %d is heard as %q, want %q", k, got, want)
		}
	}
}

func crossed(s *scene) {
	anna, bob := s.pair()
	carl := s.enters(s.Sender, 2, "carl")
	there, back, other := anna.opens(bob, "s"), bob.opens(anna, "s"), carl.opens(bob, "s")
	for i := range 3 {
		there.goes(fmt.Sprint("there ", i))
		back.goes(fmt.Sprint("back ", i))
		other.goes(fmt.Sprint("other ", i))
	}
	there.ends()
	back.goes("still open")
	other.goes("still open")
	back.ends()
	other.ends()
}

func namedAgain(s *scene) {
	anna, bob := s.pair()
	for range 3 {
		f := anna.opens(bob, "s")
		f.goes("one")
		f.ends()
	}
}

func neverBegan(s *scene) {
	anna, bob := s.pair()
	anna.refused(Word{Part: agora.Chunk, Peer: "bob", Stream: "nothing", Body: []byte("x")}, agora.StreamNotFound)
	anna.silent(bob)
}

// over proves that nothing more of a stream that was given up is heard, though its sender continues.
func (f *flow) over() {
	f.from.s.Helper()
	for _, text := range []string{"late", "later"} {
		if err := f.from.Say(f.from.s.context(), f.word(agora.Chunk, text)); err != nil && agora.AsError(err).Code != agora.StreamNotFound {
			f.from.s.Errorf("a part of a stream that was given up: %v", err)
		}
	}
	if f.from.s.Sender.Can&Sends != 0 {
		f.from.silent(f.to)
	}
}

func cancelledBySender(s *scene) {
	anna, bob := s.pair()
	f := anna.opens(bob, "s")
	f.goes("one")
	f.says(agora.Cancel, "")
	f.hears(agora.Cancel, "")
	f.over()
}

// givenUp has the receiver of a stream give it up, and its sender be told.
func (f *flow) givenUp() {
	f.from.s.Helper()
	f.to.says(Word{Part: agora.Cancel, Peer: f.from.id, Stream: f.heard})
	if w := f.from.hears(Word{Part: agora.Cancel, Peer: f.to.id}); w.Stream != f.name {
		f.from.s.Fatalf("%s hears that %q was given up, want %q", f.from.id, w.Stream, f.name)
	}
}

func cancelledByReceiver(s *scene) {
	anna, bob := s.pair()
	f := anna.opens(bob, "s")
	f.goes("one")
	f.givenUp()
	f.over()
}

func cancelledAlone(s *scene) {
	anna, bob := s.pair()
	one, two, three := anna.opens(bob, "one"), anna.opens(bob, "two"), anna.opens(bob, "three")
	one.says(agora.Cancel, "")
	one.hears(agora.Cancel, "")
	two.goes("on")
	three.givenUp()
	two.goes("and on")
	two.ends()
}

func leftMidway(s *scene) {
	anna, bob := s.pair()
	f := anna.opens(bob, "s")
	f.goes("one")
	anna.Leave()
	f.aborted(agora.StreamAborted)
	anna = s.enters(s.Sender, 2, "anna")
	g := anna.opens(bob, "s") // nothing came before it
	g.ends()
}
