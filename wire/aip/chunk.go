package aip

import (
	"bytes"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// cutter makes chunks of content: text is cut between runes, and bytes are cut into parts that say of which item they are.
type cutter struct{ item uint32 }

// chunks appends content as the chunks that like is, but for their bodies, which are slices of the content. An empty item is an empty chunk.
func (c *cutter) chunks(dst []agora.Message, like agora.Message, items []Item) []agora.Message {
	like.Part = agora.Chunk
	for _, i := range items {
		most := MaxText
		if like.Media = agora.MediaText; i.Mode != Mode_TEXT {
			c.item++
			most, like.Media = MaxBytes, agora.ItemMedia(MediaOf(i.Mode), c.item)
		}
		for rest := i.Data; ; {
			n := len(rest)
			if n > most {
				if n = most; i.Mode == Mode_TEXT {
					n = wholeRunes(rest, most)
				}
			}
			like.Body, rest = rest[:n:n], rest[n:]
			if like.Body == nil {
				like.Body = []byte{} // it is there, and empty
			}
			dst = append(dst, like)
			if len(rest) == 0 {
				break
			}
		}
	}
	return dst
}

// wholeRunes returns how many of the first bytes of a valid text, at most so many of a longer one, hold whole runes.
func wholeRunes(text []byte, most int) int {
	for n := most; n > most-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return most
}

// joiner makes content of chunks: it puts the parts of an item together, and the halves of a surrogate pair that two chunks have.
type joiner struct {
	part  numbered // of which more may come; its number is 0 while there is none
	owned bool     // part.Data is the joiner's own
	half  []byte   // a JSON escape that another one has to follow
	most  int      // bytes of an item that is put together
}

// add returns the content that a chunk completes. MESSAGE_TOO_LARGE for an item of too many bytes.
func (j *joiner) add(m *agora.Message) ([]Item, error) {
	var items []Item
	text, isText := j.text(m)
	if isText {
		items = j.flushPart(items)
		if text != nil {
			items = append(items, Item{Mode_TEXT, text})
		}
		return items, nil
	}
	items = j.flushHalf(items)
	for _, i := range chunkItems(m) {
		if i.number != 0 && i.number == j.part.number && i.Mode == j.part.Mode {
			if err := j.grow(i.Data); err != nil {
				return nil, err
			}
			continue
		}
		if items = j.flushPart(items); i.number == 0 {
			items = append(items, i.Item)
			continue
		}
		j.part, j.owned = i, false
	}
	return items, nil
}

// flush returns the content that no chunk completes any more.
func (j *joiner) flush() []Item { return j.flushHalf(j.flushPart(nil)) }

func (j *joiner) grow(data []byte) error {
	if len(j.part.Data)+len(data) > j.most {
		return agora.Errorf(agora.MessageTooLarge, "an item of the content has more than %d bytes", j.most)
	}
	if !j.owned {
		j.part.Data, j.owned = append(make([]byte, 0, 2*(len(j.part.Data)+len(data))), j.part.Data...), true
	}
	j.part.Data = append(j.part.Data, data...)
	return nil
}

func (j *joiner) flushPart(items []Item) []Item {
	if j.part.number != 0 {
		items = append(items, j.part.Item)
		j.part = numbered{}
	}
	return items
}

// flushHalf tells half a pair that nothing has followed, as no text can hold it.
func (j *joiner) flushHalf(items []Item) []Item {
	if j.half != nil {
		items = append(items, Item{Mode_TEXT, []byte(string(utf8.RuneError))})
		j.half = nil
	}
	return items
}

// text returns the text of a chunk that is text, a JSON string, or an object with a string "text"; nil where all of it waits for its other half.
func (j *joiner) text(m *agora.Message) (text []byte, is bool) {
	if m.Media == agora.MediaText && j.half == nil {
		return notNil(m.Body), true
	}
	if m.Media != "" {
		return nil, false
	}
	raw := bytes.Trim(m.Body, " \t\r\n")
	if len(raw) > 0 && raw[0] == '{' {
		raw = textMember(raw)
	}
	if !isString(raw) {
		return nil, false
	}
	inner := raw[1 : len(raw)-1]
	if j.half == nil && bytes.IndexByte(inner, '\\') < 0 {
		return notNil(inner), true
	}
	inner = append(append(append(make([]byte, 0, len(raw)+8), '"'), j.half...), inner...)
	j.half = nil
	if n := len(inner) - halfAtEnd(inner); n < len(inner) {
		j.half, inner = inner[n:], inner[:n:n]
		if n == 1 {
			return nil, true
		}
	}
	return []byte(rawjson.Unquote(append(inner, '"'))), true
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// halfAtEnd returns the length of the first half of a surrogate pair, escaped, in which valid raw JSON ends; 0 where it does not.
func halfAtEnd(raw []byte) int {
	const size = len(`\ud800`)
	at := len(raw) - size
	if at < 0 || raw[at] != '\\' || raw[at+1] != 'u' || raw[at+2]|0x20 != 'd' || bytes.IndexByte([]byte("89abAB"), raw[at+3]) < 0 {
		return 0
	}
	before := at
	for before > 0 && raw[before-1] == '\\' {
		before--
	}
	if (at-before)%2 == 1 { // the backslash is escaped itself
		return 0
	}
	return size
}

// chunkItems returns the content of a chunk that has no text of its own: bytes, or JSON. Of that an object that [ItemsOf] takes for content is that, and all else its JSON text.
func chunkItems(m *agora.Message) []numbered {
	switch bare, number := agora.SplitItem(m.Media); {
	case m.Media == agora.MediaText:
		return []numbered{{Item{Mode_TEXT, m.Body}, 0}}
	case m.Media != "":
		return []numbered{{Item{ModeOf(bare), m.Body}, number}}
	case m.Body == nil:
		return nil
	}
	if items, is := contentForm(m.Body); is {
		return items
	}
	return []numbered{{Item{Mode_TEXT, m.Body}, 0}}
}

// textMember returns the raw string "text" of an object that has one, once; nil where it does not.
func textMember(raw []byte) (text []byte) {
	o := rawjson.NewObject(raw, maxDepth)
	for o.Next() {
		if string(o.Name()) != "text" {
			continue
		}
		if text != nil || !isString(o.Val) {
			return nil
		}
		text = o.Val
	}
	if !o.End() {
		return nil
	}
	return text
}
