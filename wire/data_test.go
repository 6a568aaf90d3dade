package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRequestIDOf(t *testing.T) {
	for payload, want := range map[string]string{
		``:                                    "",
		`null`:                                "",
		`"request_id"`:                        "",
		`{"a":{"request_id":"r"}}`:            "",
		`{"request_id":7}`:                    "",
		`{"request_id":"r","request_id":"r"}`: "",
		`{"a":1,"request_id":"r-1","b":2}`:    "r-1",
		`{"request\u005fid":"r\n1"}`:          "r\n1",
		`{"request_id":"r\ud83d"}`:            "", // no error could repeat it
		`{"\ud83d":1,"request_id":"\ud83d\ude00"}`: "😀",
		`{"request_id":"` + long(257) + `"}`:       "",
		`{"request_id":"` + long(256) + `"}`:       long(256),
		`{"action":"x","body":{"q":"\u00e9"}}`:     "",
	} {
		if got := RequestIDOf(json.RawMessage(payload)); got != want {
			t.Errorf("RequestIDOf(%.60s) = %q, want %q", payload, got, want)
		}
	}
}

func long(n int) string { return strings.Repeat("é", n) }
