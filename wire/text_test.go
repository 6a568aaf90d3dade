package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

func TestAChunkIsTextWhereThatSaysHowItWasSpelt(t *testing.T) {
	for _, c := range []struct {
		chunk, text string
		ok          bool
	}{
		{`""`, "", true},
		{`" words"`, " words", true},
		{`"☃ 𝄞 / \u007f"`, "", false},
		{"\"☃ 𝄞 /\u007f\"", "☃ 𝄞 /\u007f", true},
		{`"\"\\\n\r\t"`, "\"\\\n\r\t", true},
		{`"{\"a\":\"\\n\"}"`, `{"a":"\n"}`, true},
		{`"a\/b"`, "", false},
		{`"a\bb"`, "", false},
		{`"a\fb"`, "", false},
		{`"a\u000a"`, "", false},
		{`"\u001b[0m"`, "", false},
		{`"\u0041"`, "", false},
		{`"\ud83d\ude00"`, "", false},
		{`"first \n then \ud83d"`, "", false},
	} {
		dst, ok := AppendText([]byte("before "), json.RawMessage(c.chunk))
		if want := "before " + c.text; string(dst) != want || ok != c.ok {
			t.Errorf("text of %s is %q, %v; want %q, %v", c.chunk, dst, ok, want, c.ok)
		}
	}
}

func TestTextOfAChunkAllocatesNothing(t *testing.T) {
	room := make([]byte, 0, 1024)
	chunk := json.RawMessage(`"a line\nand \"another\", ☃"`)
	m := agora.Message{Part: agora.Chunk, Media: agora.MediaText}
	if n := testing.AllocsPerRun(100, func() {
		m.Body, _ = AppendText(room[:0], chunk)
		AppendMessage(room[512:512], &m, Delivery{})
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzText holds that a chunk which becomes text comes back byte for byte, and that any body that is called text makes a frame.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		``, ` a`, `\"\\\n\r\t`, `a\/b`, `\u000a`, `\ud83d`, `\ud83d\ude00`, "\x7f☃𝄞\u2028", strings.Repeat("seven! ", 9) + `\n"`, "\xff\x00\x1f", `\`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m := agora.Message{Part: agora.Chunk, Stream: "s", From: "b", Media: agora.MediaText, Body: []byte(s)}
		var frame Frame
		must(t, DecodeAnswer(AppendMessage(nil, &m, Delivery{}), &frame))
		if got := rawjson.Unquote(frame.Chunk); got != strings.ToValidUTF8(s, "\uFFFD") && utf8.ValidString(s) {
			t.Fatalf("%q is written as %s", s, frame.Chunk)
		}
		chunk := json.RawMessage(`"` + s + `"`)
		if !json.Valid(chunk) || !utf8.Valid(chunk) {
			return
		}
		text, ok := AppendText(nil, chunk)
		if !ok {
			return
		}
		if !utf8.Valid(text) {
			t.Fatalf("%s became %q", chunk, text)
		}
		if back := rawjson.AppendText(nil, text); string(back) != string(chunk) {
			t.Fatalf("%s came back as %s", chunk, back)
		}
	})
}
