package policy

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestAScopeIsReadAsItWasWritten(t *testing.T) {
	for v, name := range listNames {
		if name == "" {
			t.Errorf("verb %d has no name in a claim", v)
		}
	}
	if slices.Contains(wholeNames[:], "") {
		t.Errorf("a whole permission has no name in a claim: %q", wholeNames)
	}
	for _, claim := range []string{
		`{}`, `{"agents":["a"]}`, `{"send":[]}`, `{"reply":false}`, `{"reply":true,"directory":false,"relay":false}`,
		`{"agents":["a","b*"],"send":["*"],"join":["public.${name}.*"],"publish":["a\\*b","\\${name}","\\\\"],"create":["x**y"],"approve":[]}`,
	} {
		s, err := ParseScope([]byte(claim))
		if err != nil {
			t.Fatalf("%s: %v", claim, err)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("%s: %v", claim, err)
		}
		again := new(Scope)
		if err := json.Unmarshal(b, again); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%s becomes %s, %v: %+v, want %+v", claim, b, err, again, s)
		}
	}
	if err := json.Unmarshal([]byte(`{"later":true}`), new(Scope)); err == nil {
		t.Error("a claim that is not understood is read")
	}
}
