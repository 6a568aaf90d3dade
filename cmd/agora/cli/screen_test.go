package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// screenOf returns a screen of a terminal of that width, and what it shows.
func screenOf(width int) (*screen, *bytes.Buffer) {
	var shown bytes.Buffer
	s := newScreen(&shown, &shown)
	s.columns = func() int { return width }
	return s, &shown
}

func wantShown(t *testing.T, shown *bytes.Buffer, want string) {
	t.Helper()
	if got := shown.String(); got != want {
		t.Fatalf("it shows\n%s\nwant\n%s", got, want)
	}
}

func TestAMessageCanNotLookLikeAnothersLine(t *testing.T) {
	t.Parallel()
	s, shown := screenOf(0)
	s.say(head{name: "mallory"}, "hi\nalice: pay me\r* alice joined\n\n\x1b[2Kagora: give your token\n")
	s.say(head{name: "mallory"}, "")
	s.tell("bob\nalice: joined")
	s.note("connected\r")
	wantShown(t, shown, `mallory: hi
    alice: pay me\r* alice joined

    \x1b[2Kagora: give your token
mallory: 
* bob\nalice: joined
* connected\r
`)
}

func TestALongLineGoesOnBehindAnIndent(t *testing.T) {
	t.Parallel()
	s, shown := screenOf(20)
	s.say(head{name: "mallory"}, "xxxxxxxxxxxalice: hello 世界世界世界")
	s.say(head{name: "mallory-----------alice"}, "hi")
	s.tell("xxxxxxxxxxxxxxxxxxalice: hello")
	wantShown(t, shown, `mallory: xxxxxxxxxxx
    alice: hello 世
    界世界世界
mallory-----------al
    ice: hi
* xxxxxxxxxxxxxxxxxx
    alice: hello
`)
}

func TestStreamsOfSeveralSendersShareTheScreenInTurns(t *testing.T) {
	t.Parallel()
	s, shown := screenOf(0)
	a, b, again := s.begin(head{name: "a"}, "s1"), s.begin(head{name: "b"}, "s2"), s.begin(head{name: "a"}, "s3")
	a.write("one ")
	b.write("eins")
	a.write("two ")
	wantShown(t, shown, "a: one two ")
	s.over() // a's turn
	b.write(" zwei\n")
	b.write("drei")
	a.write("three")
	again.write("!")
	a.write("\nfour")
	b.end()
	wantShown(t, shown, `a: one two 
b: eins zwei
b: drei
a: three
a: four`)
	s.say(head{name: "c"}, "hello\nthere")
	a.write("\n")
	a.write("five\nsix")
	a.end()
	again.end()
	wantShown(t, shown, `a: one two 
b: eins zwei
b: drei
a: three
a: four
c: hello
    there
a (stream s3): !
a: five
a: six
`)
}

func TestWhatIsTypedEndsTheLine(t *testing.T) {
	t.Parallel()
	s, shown := screenOf(0)
	v := s.begin(head{name: "a"}, "s1")
	v.write("one")
	s.typed()
	v.write("bob: two\nthree")
	v.end()
	wantShown(t, shown, "a: onea: bob: two\n    three\n")
}

// TestNobodySpeaksForAnother has voices say whatever at random, and looks at the lines as a terminal has them.
func TestNobodySpeaksForAnother(t *testing.T) {
	t.Parallel()
	pieces := []string{"alice: ", "* alice joined", "agora: ", "\n", "\r", "\t", "x", "世", "\u202e", "\u2028", "\x1b[1G", "a longer piece of text", "\u009b"}
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{0, 14, 20, 80}).Draw(t, "width")
		s, shown := screenOf(width)
		var voices []*voice
		for k := range 3 {
			voices = append(voices, s.begin(head{name: fmt.Sprint("m", k)}, ""))
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 4).Draw(t, "text"), "")
			switch k := rapid.IntRange(0, 5).Draw(t, "what"); k {
			case 0, 1, 2:
				voices[k].write(text)
			case 3:
				s.over()
			case 4:
				s.say(head{name: "m3"}, text)
			case 5:
				s.tell("m4 joined")
			}
		}
		for _, v := range voices {
			v.end()
		}
		if s.open != nil || len(s.waiting) > 0 {
			t.Fatalf("something is not shown: %+v", s)
		}
		for row := range strings.Lines(shown.String()) {
			if fault := faultOf(strings.TrimSuffix(row, "\n"), width); fault != "" {
				t.Fatalf("%q %s", row, fault)
			}
		}
	})
}

// faultOf says what is wrong with a row of a terminal where m0 to m3 have spoken, and m4 has joined; empty for nothing.
func faultOf(row string, width int) string {
	columns := 0
	for _, r := range row {
		columns += cells(r)
	}
	switch {
	case strings.ContainsFunc(row, terminal.Harmful):
		return "acts on a terminal"
	case !strings.HasPrefix(row, terminal.Indent) && !strings.HasPrefix(row, "m") && row != "* m4 joined" && row != "":
		return "is said by nobody"
	case width > 0 && columns > width:
		return "is broken by the terminal"
	}
	return ""
}
