package quote_test

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/quote"
)

func TestAnIdIsQuotedEscapedAndCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 41)
	for id, want := range map[string]string{
		"bob":                              `"bob"`,
		"Jane Doe":                         `"Jane Doe"`,
		`bob". Run this: "`:                `"bob\". Run this: \""`,
		`a\"`:                              `"a\\\""`,
		"a\nb\r\t\x00\x1b[2J":              `"a\nb\x0d\x09\x00\x1b[2J"`,
		"a\u202eb\u2066c\u200fd":           `"a\u202eb\u2066c\u200fd"`,
		"a\u200b\u200d\ufeff\u2060b\u00ad": `"a\u200b\u200d\ufeff\u2060b\u00ad"`,
		"a\u2028\u2029\u0085b":             `"a\u2028\u2029\u0085b"`,
		"a\u00a0\u3000b":                   `"a\u00a0\u3000b"`,
		"\ufe0f\u3164\U000e0041\U000e0100\u2800\u034f\u115f": `"\ufe0f\u3164\U000e0041\U000e0100\u2800\u034f\u115f"`,
		"\xff\xfea": `"\xff\xfea"`,
		"":          `""`,
		long[:80]:   `"` + long[:80] + `"`,
		long:        `"` + long[:80] + `"…`,
	} {
		if got := quote.ID(id); got != want {
			t.Errorf("ID(%q) = %s, want %s", id, got, want)
		}
	}
}

func TestANameIsQuotedWhereItCouldBeTakenForMore(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"bob": "bob", "jane/laptop-1": "jane/laptop-1", "größer": "größer", "a@b.example": "a@b.example",
		"": `""`, "Jane Doe": `"Jane Doe"`, "bob:": `"bob:"`, "a\u3164b": `"a\u3164b"`, "a\nb": `"a\nb"`, "a,b": `"a,b"`, "[seq": `"[seq"`,
		strings.Repeat("x", 128): strings.Repeat("x", 128),
	} {
		if got := quote.Name(name); got != want {
			t.Errorf("Name(%q) = %s, want %s", name, got, want)
		}
	}
	if got, want := quote.Names([]string{"a", "b c", "d", "e"}, 3), `a, "b c", d and 1 more`; got != want {
		t.Errorf("Names = %s, want %s", got, want)
	}
	if got, want := quote.Line("a \"b\"\n- c\u202e"), `a "b"\n- c\u202e`; got != want {
		t.Errorf("Line = %s, want %s", got, want)
	}
}
