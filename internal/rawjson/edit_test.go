package rawjson_test

import (
	"testing"

	"github.com/agora-relay/agora/internal/rawjson"
)

func TestObjectsAreEditedWithoutSpellingTheRestAnew(t *testing.T) {
	t.Parallel()
	const object = ` {"z":1.10, "a" : 9007199254740993,"a":"cut \ud83d","\u0066rom":{"<":[ ]}} `
	if got, want := string(rawjson.Without([]byte(object), "from", "z")), `{"a" : 9007199254740993,"a":"cut \ud83d"}`; got != want {
		t.Errorf("Without = %s, want %s", got, want)
	}
	if got := string(rawjson.Without([]byte(object), "from", "z", "a")); got != `{}` {
		t.Errorf("without all it is %s", got)
	}
	if got, want := string(rawjson.With([]byte(object), "t", []byte(`1E5`))), ` {"z":1.10, "a" : 9007199254740993,"a":"cut \ud83d","\u0066rom":{"<":[ ]},"t":1E5}`; got != want {
		t.Errorf("With = %s, want %s", got, want)
	}
	if got := string(rawjson.With([]byte(`{ }`), `a"`, []byte(`[]`))); got != `{"a\"":[]}` {
		t.Errorf("of an empty one it is %s", got)
	}
	if got := string(rawjson.Member([]byte(object), "a")); got != `"cut \ud83d"` {
		t.Errorf("Member = %s, want the last", got)
	}
	if rawjson.Member([]byte(object), "b") != nil || rawjson.Member([]byte(`[1]`), "a") != nil {
		t.Error("a member is found that is not there")
	}
}

func TestDepthIsThatOfBracketsOutsideOfText(t *testing.T) {
	t.Parallel()
	for text, depth := range map[string]int{``: 0, `1`: 0, `[]`: 1, `[[],[],{}]`: 2, `{"a":[{"b":1}],"c":[]}`: 3, `["[[[","\"[[",[]]`: 2, `[[[`: 3, `]]]][`: 0} {
		if rawjson.Deeper([]byte(text), depth) || depth > 0 && !rawjson.Deeper([]byte(text), depth-1) {
			t.Errorf("%s is not %d deep", text, depth)
		}
	}
}
