package client

import (
	"strconv"
	"strings"

	"github.com/agora-relay/agora/internal/rawjson"
)

// joiner makes text of the raw pieces that it comes in. Half a character that ends one, an escaped surrogate, is
// kept for its other half: a Go string can't hold it alone.
type joiner struct{ half string }

// add returns the text of a piece, and of what was kept of the last one. What stays half becomes U+FFFD.
func (j *joiner) add(raw string) string {
	raw = j.half + raw
	at := len(raw)
	if endsInHalf(raw) {
		at -= len(`\ud83d`)
	}
	j.half = raw[at:]
	return unescape(raw[:at])
}

// end returns the text of what was kept.
func (j *joiner) end() string {
	half := j.half
	j.half = ""
	return unescape(half)
}

func unescape(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return rawjson.Unquote([]byte(`"` + raw + `"`))
}

// endsInHalf reports whether raw text ends in an escaped high surrogate.
func endsInHalf(raw string) bool {
	at := len(raw) - len(`\ud83d`)
	if at < 0 || raw[at] != '\\' || raw[at+1] != 'u' {
		return false
	}
	before := len(strings.TrimRight(raw[:at], `\`))
	high, err := strconv.ParseUint(raw[at+2:], 16, 16)
	return err == nil && 0xD800 <= high && high < 0xDC00 && (at-before)%2 == 0
}
