package rest

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

func TestPartsOfAnyDialectAreShownAsText(t *testing.T) {
	for _, c := range []struct {
		m             agora.Message
		payload, text string // no text: it is none
	}{
		{agora.Message{Part: agora.Chunk, Media: agora.MediaText, Body: []byte("a\n")}, `"a\n"`, "a\n"},
		{agora.Message{Part: agora.Chunk, Body: []byte(`"\u0061"`)}, `"\u0061"`, "a"},
		{agora.Message{Part: agora.Chunk, Body: []byte(`{"text":"\u0061","n":1}`)}, `"\u0061"`, "a"},
		{agora.Message{Part: agora.Chunk, Body: []byte(`{"delta":[1.0]}`)}, `"{\"delta\":[1.0]}"`, `{"delta":[1.0]}`},
		{agora.Message{Part: agora.Chunk, Media: "image/png", Body: []byte{0x89, 'P'}}, `{"media":"image/png","data":"iVA="}`, ""},
		{agora.Message{Part: agora.End, Body: []byte(`{"n": 1.0}`)}, `{"n": 1.0}`, ""},
		{agora.Message{Part: agora.End}, `null`, ""},
	} {
		if got := payload(&c.m); string(got) != c.payload {
			t.Errorf("payload of %+v is %s, want %s", c.m, got, c.payload)
		}
		if c.m.Part != agora.Chunk {
			continue
		}
		if got, err := wire.ChunkText(&c.m); got != c.text || (err != nil) != (c.text == "") {
			t.Errorf("text of %+v is %q, %v, want %q", c.m, got, err, c.text)
		}
	}
}
