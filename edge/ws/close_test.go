package ws

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/agora-relay/agora"

	"github.com/agora-relay/agora/edge/ws/frame"
)

func TestTheProtocolHasEveryCloseCode(t *testing.T) {
	b, err := os.ReadFile("../../PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, code := range agora.Codes() {
		want := "–"
		if closes, ok := closeOf(code); ok {
			want = fmt.Sprint(closes)
		}
		if row := fmt.Sprintf("\\| `%s` \\| [0-9]+ \\| [0-9]+ [A-Z_]+ \\| %s \\|", code, want); !regexp.MustCompile(row).MatchString(text) {
			t.Errorf("PROTOCOL.md has no row %s", row)
		}
	}
	said := []int{frame.CloseNormal, frame.CloseAway, 1003, 1007, frame.ClosePolicy, frame.CloseTooBig, frame.CloseRestart, frame.CloseTryLater, closeTakenOver, closeExists, closeKicked}
	for _, code := range said {
		if !strings.Contains(text, fmt.Sprintf("\n| %d |", code)) {
			t.Errorf("PROTOCOL.md does not explain the close code %d", code)
		}
	}
}
