package wire

import (
	"testing"

	"github.com/agora-relay/agora"
)

func TestAnErrorInAReplyIsKnown(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]agora.Code{
		`{"error":{"code":"NOT_FOUND","message":"no skill"}}`:                    agora.NotFound,
		`{"request_id":"r","error":{"message":"","code":"TIMEOUT","path":"/a"}}`: agora.Timeout,
		`{"error":{"code":"OF_MY_OWN","message":"x"}}`:                           "",
		`{"error":{"code":"NOT_FOUND"}}`:                                         "",
		`{"error":"x","code":404}`:                                               "",
		`{"error":{"code":"NOT_FOUND","message":"x"},"text":"y"}`:                "",
		`{"text":"\"error\""}`:                                                   "",
		`"error"`:                                                                "",
		``:                                                                       "",
		string(AppendReplyError(nil, agora.Errorf(agora.StreamAborted, "a \"quote\"\u2028"))): agora.StreamAborted,
	} {
		e := ReplyError([]byte(payload))
		if got := agora.Code(""); e != nil {
			got = e.Code
			if got != want {
				t.Errorf("%s is %v, want %q", payload, e, want)
			}
		} else if want != "" {
			t.Errorf("%s is no error, want %q", payload, want)
		}
	}
}
