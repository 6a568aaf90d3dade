package aip

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
)

func TestContentIsMadeOfValues(t *testing.T) {
	t.Parallel()
	for about, try := range map[string]struct {
		value any
		modes []Mode
		want  []*ContentItem // nil: refused
	}{
		"a string":              {"a", nil, []*ContentItem{Text("a")}},
		"bytes":                 {[]byte{1}, nil, []*ContentItem{Embedded([]byte{1})}},
		"an image":              {[]byte{1}, []Mode{ImageMode}, []*ContentItem{Image([]byte{1})}},
		"strings":               {[]string{"a", "b"}, nil, []*ContentItem{Text("a"), Text("b")}},
		"byte slices":           {[][]byte{{1}, {2}}, []Mode{AudioMode, EmbeddedMode}, []*ContentItem{Audio([]byte{1}), Embedded([]byte{2})}},
		"a mixture":             {[]any{"a", []byte{1}, Image(nil)}, []Mode{TextMode, ImageMode, TextMode}, []*ContentItem{Text("a"), Image([]byte{1}), Image(nil)}},
		"items":                 {[]*ContentItem{Text("a")}, nil, []*ContentItem{Text("a")}},
		"nothing":               {nil, nil, []*ContentItem{}},
		"a number":              {3, nil, nil},
		"text as an image":      {"a", []Mode{ImageMode}, nil},
		"bytes as text":         {[]byte{1}, []Mode{TextMode}, nil},
		"too few modes":         {[]string{"a", "b"}, []Mode{TextMode}, nil},
		"a number among others": {[]any{"a", 3}, nil, nil},
	} {
		got, err := NewContent(try.value, try.modes...)
		if try.want == nil {
			if e := agora.AsError(err); e == nil || e.Code != agora.InvalidRequest {
				t.Errorf("%s: %v, %v, want INVALID_REQUEST", about, got, err)
			}
			continue
		}
		if err != nil || !proto.Equal(&Message{Content: got}, &Message{Content: try.want}) {
			t.Errorf("%s: %v, %v, want %v", about, got, err, try.want)
		}
	}
	if got := TextOf([]*ContentItem{Text("a"), Image([]byte("x")), Text("b")}); got != "ab" {
		t.Errorf("the text is %q, want ab", got)
	}
}

func TestATaskIsNewAndHasItsParents(t *testing.T) {
	t.Parallel()
	a, b := NewTask("p", "q"), NewTask()
	if a.GetTaskId() == "" || a.GetTaskId() == b.GetTaskId() || len(a.GetParentTaskIds()) != 2 || a.GetTaskStatus() != TaskCreate {
		t.Errorf("the tasks are %v and %v", a, b)
	}
}
