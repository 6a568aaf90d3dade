package eventdata

import (
	"encoding/json"

	"github.com/agora-relay/agora/internal/rawjson"
)

// Split cuts data whose string `text` has more raw bytes than threshold
// into the data of deltas (Agora spaces, space.event.delta): every other field
// rides in the first, whose bytes are otherwise untouched; the others are
// {"text":…} alone. The raw JSON of the text is cut into pieces of at most
// threshold bytes, none empty, and never inside an escape, a rune or a
// surrogate pair; where one of those is larger than the threshold, it is a
// piece by itself. Half a surrogate pair stays what it is. It returns nil when there is nothing to split: the text is
// short, missing, no string or there twice, data is no object, or threshold is
// not positive.
func Split(data json.RawMessage, threshold int) []json.RawMessage {
	if threshold <= 0 || len(data) <= threshold || rawjson.BadUTF8(data) >= 0 {
		return nil
	}
	from, to, what := Text(data, maxDepth)
	if what != "" || to-from-2 <= threshold {
		return nil
	}
	text := data[from+1 : to-1]
	deltas := make([]json.RawMessage, 0, len(text)/threshold+1)
	for first := true; len(text) > 0; first = false {
		n := cut(text, threshold)
		before, after := []byte(`{"text":"`), []byte(`"}`)
		if first {
			before, after = data[:from+1], data[to-1:]
		}
		delta := make([]byte, 0, len(before)+n+len(after))
		delta = append(append(append(delta, before...), text[:n]...), after...)
		deltas = append(deltas, delta)
		text = text[n:]
	}
	if len(deltas) < 2 {
		return nil
	}
	return deltas
}

// cut returns how many bytes of raw text, at most max but at least one
// character, can be cut off.
func cut(text []byte, max int) int {
	n := 0
	for n < len(text) {
		u := rawjson.Unit(text[n:])
		if n > 0 && n+u > max {
			break
		}
		n += u
	}
	return n
}
