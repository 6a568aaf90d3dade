package agoratest

import "testing"

func TestFramesAreComparedWithPatterns(t *testing.T) {
	const frame = Frame(`{"type":"message","from":"a","payload":{"x":1.0,"y":[true]},"seq":7}`)
	for _, c := range []struct {
		pattern            string
		matches, textually bool
	}{
		{`{}`, true, true},
		{`{"type":"message","from":"a"}`, true, true},
		{`{"from":"a","type":"message"}`, true, false},
		{`{"type":"message","payload":"<any>"}`, true, false},
		{`{"type":"message","from":"a","payload":{"x":1.0,"y":[true]}}`, true, true},
		{`{"type":"message","from":"a","payload":{"y":[true],"x":1.0}}`, true, false},
		{`{"payload":{"x":1.0}}`, false, false},
		{`{"payload":{"x":1,"y":[true]}}`, false, false},
		{`{"payload":{"x":1.0,"y":[true,1]}}`, false, false},
		{`{"stream_id":"<none>","type":"message"}`, true, true},
		{`{"seq":"<none>"}`, false, false},
		{`{"type":"reply"}`, false, false},
		{`{"extra":1}`, false, false},
	} {
		if d := frame.Match(c.pattern); (d == "") != c.matches {
			t.Errorf("Match(%s) = %q, want a match: %t", c.pattern, d, c.matches)
		}
		if d := frame.MatchText(c.pattern); (d == "") != c.textually {
			t.Errorf("MatchText(%s) = %q, want a match: %t", c.pattern, d, c.textually)
		}
	}
	if frame.Seq() != 7 || frame.Text("from") != "a" || frame.Raw("payload") != `{"x":1.0,"y":[true]}` || frame.Has("n") {
		t.Errorf("fields of %s are misread", frame)
	}
}
