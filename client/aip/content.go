package aip

import (
	"crypto/rand"
	"strings"

	"github.com/agora-relay/agora"
	wire "github.com/agora-relay/agora/wire/aip"
)

// Text returns a piece of content that is text.
func Text(s string) *ContentItem { return &ContentItem{Data: &wire.ContentItem_Text{Text: s}} }

// Image returns a piece of content that is the bytes of an image.
func Image(b []byte) *ContentItem { return &ContentItem{Data: &wire.ContentItem_Image{Image: b}} }

// Audio returns a piece of content that is the bytes of a sound.
func Audio(b []byte) *ContentItem { return &ContentItem{Data: &wire.ContentItem_Audio{Audio: b}} }

// Embedded returns a piece of content that is bytes of any other kind.
func Embedded(b []byte) *ContentItem {
	return &ContentItem{Data: &wire.ContentItem_Embedded{Embedded: b}}
}

// NewContent returns values as content: strings, which are text, and byte slices, which are what their mode says, else
// embedded. A value is one of these, a piece of content, or a slice of them. modes has one for each of them, or is nil.
// Another value, and a mode that does not suit, is an INVALID_REQUEST error.
func NewContent(value any, modes ...Mode) ([]*ContentItem, error) {
	values := spread(value)
	if len(modes) > 0 && len(modes) != len(values) {
		return nil, agora.Errorf(agora.InvalidRequest, "%d modes are given for %d pieces of content", len(modes), len(values))
	}
	items := make([]*ContentItem, len(values))
	for i, v := range values {
		mode, isText := EmbeddedMode, false
		switch v := v.(type) {
		case *ContentItem:
			items[i] = v
			continue
		case string:
			mode, isText = TextMode, true
		case []byte:
		default:
			return nil, agora.Errorf(agora.InvalidRequest, "content is a string or bytes, not a %T", v)
		}
		if len(modes) > 0 {
			mode = modes[i]
		}
		if (mode == TextMode) != isText {
			return nil, agora.Errorf(agora.InvalidRequest, "content of mode %v can't be a %T", mode, v)
		}
		items[i] = itemOf(mode, v)
	}
	return items, nil
}

// spread returns the values of a slice, and a value that is none alone.
func spread(value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		return v
	case []string:
		return anys(v)
	case [][]byte:
		return anys(v)
	case []*ContentItem:
		return anys(v)
	}
	return []any{value}
}

func anys[T any](values []T) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// itemOf returns a value that suits its mode.
func itemOf(mode Mode, v any) *ContentItem {
	switch mode {
	case TextMode:
		return Text(v.(string))
	case ImageMode:
		return Image(v.([]byte))
	case AudioMode:
		return Audio(v.([]byte))
	}
	return Embedded(v.([]byte))
}

// TextOf returns the text in content, one piece after the other; what is no text is left out.
func TextOf(content []*ContentItem) string {
	var b strings.Builder
	for _, item := range content {
		b.WriteString(item.GetText())
	}
	return b.String()
}

// NewTask returns a task that is created and not executed, with an id of its own.
func NewTask(parents ...string) *TaskInfo {
	return &TaskInfo{TaskId: rand.Text(), ParentTaskIds: parents, TaskStatus: TaskCreate}
}
