package p2p

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

func TestEveryCodeHasANumber(t *testing.T) {
	want := map[agora.Code]int{
		agora.InvalidRequest: 400, agora.Unauthorized: 403, agora.AgentExists: 400, agora.SpaceNotFound: 404, agora.SpaceFull: 400, agora.RateLimited: 400,
		agora.AgentNotFound: 404, agora.AgentOffline: 404, agora.Forbidden: 403, agora.StreamAborted: 502, agora.StreamNotFound: 404, agora.MessageTooLarge: 413,
		agora.Unavailable: 500, agora.Timeout: 504, agora.NotFound: 404,
	}
	for _, c := range agora.Codes() {
		f := FaultOf(fmt.Errorf("wrapped: %w", agora.Errorf(c, "why")))
		if f.Code != want[c] || f.Err.Code != c || f.Err.Message != "why" {
			t.Errorf("%s is %v, want %d", c, f, want[c])
		}
	}
}

func TestEveryStatusHasANumber(t *testing.T) {
	written := []int{400, 403, 404, 405, 408, 413, 500, 502, 504}
	for status := range 1000 {
		if n := Number(status); !slices.Contains(written, n) || slices.Contains(written, status) && n != status {
			t.Errorf("%d is told as %d", status, n)
		}
	}
	for status, want := range map[int]int{0: 502, 101: 502, 204: 502, 302: 502, 401: 403, 409: 400, 418: 400, 422: 400, 429: 400, 501: 500, 503: 500, 599: 500, 600: 502} {
		if n := Number(status); n != want {
			t.Errorf("%d is told as %d, want %d", status, n, want)
		}
	}
}

func TestAFailureOfOthersIsPassedOnInOurNumbers(t *testing.T) {
	f, ok := ParseFault([]byte(`{"error":"later","code":503}`))
	if told := string(AppendFault(nil, f)); !ok || told != `{"error":"later","code":500}` {
		t.Errorf("it is told as %s", told)
	}
}

func TestAFailureTellsNothingThatIsHidden(t *testing.T) {
	cause := errors.New("dial 10.0.0.7: refused")
	for _, err := range []error{cause, &agora.Error{Code: agora.Unavailable, Message: "not now", Cause: cause}, broken(cause), fmt.Errorf("x: %w", broken(cause))} {
		if told := string(AppendFault(nil, err)); strings.Contains(told, "10.0") || !strings.HasPrefix(told, `{"error":"`) {
			t.Errorf("%v is told as %s", err, told)
		}
	}
	if FaultOf(nil) != nil || len(AppendFault(nil, nil)) != 0 {
		t.Error("no error is told as one")
	}
}

func TestALongTextIsCutAtACharacter(t *testing.T) {
	for _, s := range []string{strings.Repeat("é\x00", 5000), strings.Repeat("\xff", 5000), strings.Repeat("😀", 5000)} {
		told := AppendFault(nil, NewFault(500, "%s", s))
		f, ok := ParseFault(told)
		if len(told) > MaxFault || !ok || f.Code != 500 || !strings.HasPrefix(strings.ToValidUTF8(s, "\uFFFD"), f.Err.Message) {
			t.Errorf("it is told as %d bytes: %.40s", len(told), told)
		}
	}
	if _, ok := ParseFault([]byte(`{"code":500,"error":"` + strings.Repeat("x", MaxFault) + `"}`)); ok {
		t.Error("an answer that is too long for a failure is one")
	}
}
