package policy

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzScope reads what a token says of its permissions: what is not understood is refused, and what is taken is one
// object of JSON, whose text says the same when it is read again.
func FuzzScope(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"send":[]}`, `{"send":["a","b/*"],"reply":false}`, `{"agents":["*"],"directory":true,"relay":false}`, `{"Send":["a"]}`, `{"send":["a"],"send":["*"]}`, `{"sends":[]}`,
		`{"send":"a"}`, `{"send":[""]}`, `{"send":["a*b"]}`, `{"send":[null]}`, `[]`, `{"join":["` + "\xff" + `"]}`, `{} {"send":[]}`, `{"reply":1}`, `{"approve":["a"],"publish":["s"],"create":["c"]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, claim []byte) {
		s, err := ParseScope(claim)
		if err != nil {
			if s != nil || err.Error() == "" {
				t.Fatalf("%q: %v, %v", claim, s, err)
			}
			return
		}
		var said map[string]json.RawMessage
		if json.NewDecoder(bytes.NewReader(claim)).Decode(&said) != nil {
			t.Fatalf("%q is no object, and is taken", claim)
		}
		again, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseScope(again); err != nil {
			t.Fatalf("%q is taken, and %q is not: %v", claim, again, err)
		}
	})
}
