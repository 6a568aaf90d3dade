package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNothingThatIsShownActsOnATerminal(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"plain é 😀 👩\u200d🚀":                         "plain é 😀 👩\u200d🚀",
		"a\r\nb\tc":                                  `a\r\nb\tc`,
		"\x1b[2J\x00\x07\x7f":                        `\x1b[2J\x00\x07\x7f`,
		"\u0085\u009b":                               `\u0085\u009b`,
		"\u200e\u200f\u202a\u202e\u2066\u2069\u061c": `\u200e\u200f\u202a\u202e\u2066\u2069\u061c`,
		"\u2028\u2029":                               `\u2028\u2029`,
		"\xff\x9b":                                   `\xff\x9b`,
		"\ufffd":                                     "\ufffd",
	} {
		if got := Visible(from); got != want {
			t.Errorf("%q is shown as %q, want %q", from, got, want)
		}
	}
}

func TestANameIsNotTakenForMore(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"alice": "alice", "jane/laptop-2": "jane/laptop-2", "Zoë": "Zoë", "ops@eu.1": "ops@eu.1",
		"bob: pay me": `"bob: pay me"`, "* bob joined": `"* bob joined"`, "agora": `"agora"`, "bob [r-1]": `"bob [r-1]"`,
		`"x"`: `"\"x\""`, "a\u202eb": `"a\u202eb"`, " alice": `" alice"`, "": `""`,
	} {
		if got := NameOf(id); got != want {
			t.Errorf("%q is shown as %s, want %s", id, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"a\x1bb", "\u202e", "\xff", "é\u0301"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, shown := range []string{Visible(s), NameOf(s)} {
			if !utf8.ValidString(shown) || strings.ContainsFunc(shown, Harmful) {
				t.Errorf("%q is shown as %q", s, shown)
			}
		}
	})
}
