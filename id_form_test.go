package agora_test

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

func TestNoIdLooksLikeTheClustersOwn(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"agora", "Agora", "AGORA", "aGoRa", "аgora", "аgоrа", "αgοra", "ａｇｏｒａ", "Ａgora", "ag0ra", "AG0RA", "agorá", "ágora", "agøra", "ạgora", "𝐚𝐠𝐨𝐫𝐚", "𝔸𝔾𝕆ℝ𝔸", "ⓐⓖⓞⓡⓐ", "🄰🄶🄾🅁🄰", "🅐🅖🅞🅡🅐", "🅰🅶🅾🆁🅰", "🇦🇬🇴🇷🇦",
		"ɑɡora", "ᴀɢᴏʀᴀ", "agoга", "ᎪᏀOᏒᎪ", "agora.", "@agora", "a g o r a", "a-g-o-r-a", "«agora»", "agora\u3164", "ag\ufe0fora", "agor\u034fa", "aցoгa", "а̊gora",
	} {
		if _, err := agora.ParseOwnID(id); err == nil || agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("%q is an agent's: %v", id, err)
		}
	}
	for _, id := range []string{"agora-1", "agora2", "agoraphobia", "my agora", "agra", "aggora", "agorra", "angora", "pagora", "agorá-bot", "a", "о", "Ангара", strings.Repeat("agora", 25), "0", "....."} {
		if _, err := agora.ParseOwnID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := agora.ParseAgentID("agora"); err != nil {
		t.Errorf("the cluster as who is addressed: %v", err)
	}
}

func TestAnIdHasOneForm(t *testing.T) {
	t.Parallel()
	for about, ids := range map[string][2]string{ // the other form, and the right one
		"a letter and its accent":         {"Jose\u0301", "José"},
		"a sign for another":              {"\u212b", "\u00c5"},
		"marks in another order":          {"q\u0307\u0323", "q\u0323\u0307"},
		"a syllable in its parts":         {"\u1100\u1161", "가"},
		"a letter that is never composed": {"\u0958", "\u0915\u093c"},
		"an ideograph for compatibility":  {"\uf900", "\u8c48"},
		"a space before":                  {" bob", "bob"},
		"a space behind":                  {"bob ", "bob bob"},
		"a blank pattern before":          {"\u2800bob", "b\u2800ob"},
		"a letter without form behind":    {"bob\u3164", "b\u3164ob"},
		"a space alone":                   {" ", "_"},
		"another space":                   {"bob\u00a0", "bób"},
		"a wide space":                    {"bob\u3000bob", "bob bob"},
		"nothing of no width":             {"b\u200bob", "❤\ufe0f."},
	} {
		if _, err := agora.ParseAgentID(ids[0]); err == nil || agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("%s: %q is an id: %v", about, ids[0], err)
		}
		if id, err := agora.ParseAgentID(ids[1]); err != nil || string(id) != ids[1] {
			t.Errorf("%s: %q: %q, %v", about, ids[1], id, err)
		}
	}
	for _, id := range []string{"bob ", " bob", "Jose\u0301", "Agora"} {
		if _, err := agora.ParseStoredID(id); err != nil {
			t.Errorf("who has the id %q can't leave: %v", id, err)
		}
	}
}
