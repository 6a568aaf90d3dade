package aip

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
)

func isCode(err error, code agora.Code) bool {
	e, ok := errors.AsType[*agora.Error](err)
	return ok && e.Code == code && e.Message != ""
}

// oddTexts are texts that look like something else on their way.
var oddTexts = []string{
	"", "hello", `"hello"`, ` "hello"`, "5", "-0.10e5", "01", "null", "true", "nul", "{}", " {} \n", `{"a":1,"a":2}`, `[1, 2]`, "[", `{"content":[]}`, `{"content":[{"text":"x"}]}`,
	`{"content":[{"text":"x"},{"media":"image/*","data":"AA=="}]}`, `{ "content" : [ { "text" : "x" } ] }`, `{"content":[{"text":"x"}],"more":1}`, `{"media":"image/*","data":"AA=="}`,
	`{"media":"image/*","data":"AA==","item":3}`, `{"text":"x"}`, `"\ud83d"`, `\ud83d`, "\x00", "\u2028", "a\r\nb", `"a" and "b"`, strings.Repeat("[", 63) + strings.Repeat("]", 63),
	strings.Repeat("[", 64) + strings.Repeat("]", 64), "{}{}", "{} x", `{"a":tru}`, "\uFEFF{}",
}

var (
	texts = rapid.OneOf(rapid.SampledFrom(oddTexts), rapid.String(), rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat(rapid.SampledFrom([]string{"a", "é", "€", "😀", `"`, "\x01", "ab\n"}).Draw(t, "unit"), rapid.IntRange(1, 200_000).Draw(t, "times"))
	}))
	datas = rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Custom(func(t *rapid.T) []byte {
		return bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte"), 0, 0xff}, rapid.IntRange(0, 300_000).Draw(t, "times"))
	}))
	smallTexts = rapid.OneOf(rapid.SampledFrom(oddTexts), rapid.String())
	smallDatas = rapid.SliceOf(rapid.Byte())
)

func itemsOf(text *rapid.Generator[string], data *rapid.Generator[[]byte]) *rapid.Generator[[]Item] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Item {
		if mode := Mode(rapid.IntRange(0, 3).Draw(t, "mode")); mode != Mode_TEXT {
			return Item{mode, data.Draw(t, "data")}
		}
		return Item{Mode_TEXT, []byte(strings.ToValidUTF8(text.Draw(t, "text"), "?"))}
	}), 0, 5)
}

func TestContentThatIsAPayloadComesBackAsItWas(t *testing.T) {
	thousand(t, func(t *rapid.T) {
		items := itemsOf(smallTexts, smallDatas).Draw(t, "content")
		body := AppendPayload(nil, items)
		if len(items) == 0 {
			body = nil
		} else if !json.Valid(body) || !utf8.Valid(body) {
			t.Fatalf("%v is no JSON: %s", items, body)
		}
		if got := ItemsOf(&agora.Message{Body: body}); !sameItems(got, items) {
			t.Fatalf("%v is %s, and comes back as %v", items, body, got)
		}
	})
}

func TestAPayloadComesBackAsItWasUnlessItsTextIsJSON(t *testing.T) {
	values := rapid.OneOf(rapid.SampledFrom(oddTexts), rapid.Custom(func(t *rapid.T) string {
		b, err := json.Marshal(rapid.OneOf(rapid.Just[any](nil), rapid.Map(smallTexts, func(s string) any { return s }), rapid.Map(rapid.Int(), func(n int) any { return n }),
			rapid.Map(rapid.MapOf(smallTexts, smallTexts), func(m map[string]string) any { return m })).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}))
	thousand(t, func(t *rapid.T) {
		body := values.Draw(t, "payload")
		if !isJSON([]byte(body)) {
			return
		}
		items := ItemsOf(&agora.Message{Body: []byte(body)})
		if _, is := contentForm([]byte(body)); is {
			return // it becomes the content that it says
		}
		back := string(AppendPayload(nil, items))
		var text string
		if json.Unmarshal([]byte(body), &text) != nil || body == "null" { // no string
			if back != body {
				t.Fatalf("%s came back as %s", body, back)
			}
			return
		}
		var got string
		if len(items) != 1 || string(items[0].Data) != text {
			t.Fatalf("%s became %v", body, items)
		}
		if !standsAsJSON([]byte(text)) && (json.Unmarshal([]byte(back), &got) != nil || got != text) {
			t.Fatalf("%s came back as %s", body, back)
		}
	})
}

// rejoined puts content through chunks and back.
func rejoined(t *rapid.T, c *cutter, j *joiner, items []Item) (back []Item) {
	for _, m := range c.chunks(nil, agora.Message{}, items) {
		if m.Part != agora.Chunk || m.Body == nil {
			t.Fatalf("%+v is no chunk", m)
		}
		if m.Media == agora.MediaText && (len(m.Body) > MaxText || !utf8.Valid(m.Body)) || len(m.Body) > MaxBytes {
			t.Fatalf("a chunk of %q has %d bytes", m.Media, len(m.Body))
		}
		got, err := j.add(&m)
		if err != nil {
			t.Fatal(err)
		}
		back = append(back, got...)
	}
	return back
}

func TestContentThatIsCutIntoChunksComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want, got []Item
		var c cutter
		j := joiner{most: MaxMessage}
		for range rapid.IntRange(1, 3).Draw(t, "messages") {
			items := itemsOf(texts, datas).Draw(t, "content")
			want, got = append(want, items...), append(got, rejoined(t, &c, &j, items)...)
		}
		got = append(got, j.flush()...)
		if !sameItems(withoutCuts(got), withoutCuts(want)) {
			t.Fatal("the content is another one")
		}
		small := func(i Item) bool { return i.Mode != Mode_TEXT || len(i.Data) <= MaxText }
		if !slices.ContainsFunc(want, func(i Item) bool { return !small(i) }) && !sameItems(got, want) {
			t.Fatal("items that need not be cut are others")
		}
	})
}

// withoutCuts puts texts that stand behind each other together.
func withoutCuts(items []Item) (all []Item) {
	for _, i := range items {
		if n := len(all); n > 0 && i.Mode == Mode_TEXT && all[n-1].Mode == Mode_TEXT {
			all[n-1].Data = slices.Concat(all[n-1].Data, i.Data)
			continue
		}
		all = append(all, i)
	}
	return all
}

func TestTextThatIsCutInsideARuneIsPutTogether(t *testing.T) {
	thousand(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune{'a', '\\', '"', 'u', 'd', '8', '😀', '🙂', 'é'})).Draw(t, "text")
		raw := escaped(text)
		var j joiner
		var got []byte
		for len(raw) > 0 {
			n := rapid.IntRange(1, len(raw)).Draw(t, "units")
			items, err := j.add(&agora.Message{Part: agora.Chunk, Body: []byte(`"` + strings.Join(raw[:n], "") + `"`)})
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range items {
				got = append(got, i.Data...)
			}
			raw = raw[n:]
		}
		if rest := j.flush(); string(got) != text || rest != nil {
			t.Fatalf("%q came as %q, with %v behind", text, got, rest)
		}
	})
}

// escaped returns the units of text as JSON that escapes all that is beyond ASCII, as JavaScript may: each half of a surrogate pair is one.
func escaped(text string) (units []string) {
	for _, r := range text {
		switch {
		case r > 0xffff:
			r -= 0x10000
			units = append(units, `\u`+hex4(0xd800+r>>10), `\u`+hex4(0xdc00+r&0x3ff))
		case r > 0x7f:
			units = append(units, `\u`+hex4(r))
		case r == '\\' || r == '"':
			units = append(units, `\`+string(r))
		default:
			units = append(units, string(r))
		}
	}
	return units
}

func hex4(r rune) string {
	const digits = "0123456789aBcDeF"
	return string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}

func TestHalfAPairThatNothingFollowsIsToldOnce(t *testing.T) {
	for _, next := range []*agora.Message{{Body: []byte(`"x"`)}, {Body: []byte("x"), Media: agora.MediaText}, nil} {
		var j joiner
		items, err := j.add(&agora.Message{Body: []byte(`"a\ud83d"`)})
		if err != nil || len(items) != 1 || string(items[0].Data) != "a" {
			t.Fatalf("got %v, %v", items, err)
		}
		want := "\uFFFD"
		if next != nil {
			items, err = j.add(next)
			want += "x"
		} else {
			items = j.flush()
		}
		got := withoutCuts(items)
		if err != nil || len(got) != 1 || string(got[0].Data) != want {
			t.Errorf("got %v, %v, want %q", got, err, want)
		}
	}
}

func TestContentOfTooManyItemsIsRefused(t *testing.T) {
	items := make([]Item, MaxItems+1)
	for n, want := range map[int]bool{MaxItems: true, MaxItems + 1: false} {
		got, err := Items((&Message{Content: items[:n]}).Append(nil))
		if want != (err == nil) || want && len(got) != n || !want && !isCode(err, agora.MessageTooLarge) {
			t.Errorf("%d items are %d, %v", n, len(got), err)
		}
	}
	var r QuestReader
	if _, err := r.Read(quest(AgentMessage_START_QUEST, items...)); !isCode(err, agora.MessageTooLarge) {
		t.Errorf("a quest of too many: %v", err)
	}
	if _, _, err := ToolResult(appendItems(nil, fieldToolContent, items)); !isCode(err, agora.StreamAborted) {
		t.Errorf("a response of too many: %v", err)
	}
}

func TestAnItemOfTooManyPartsIsRefused(t *testing.T) {
	j := joiner{most: 5}
	for n, want := range []bool{true, true, false} {
		if _, err := j.add(&agora.Message{Body: []byte("ab"), Media: "image/*;item=1"}); (err == nil) != want || err != nil && !isCode(err, agora.MessageTooLarge) {
			t.Errorf("part %d: %v", n, err)
		}
	}
}
