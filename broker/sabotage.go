//go:build sabotage

package broker

import (
	"os"
	"slices"
	"strings"
	"time"
)

// For tests only: AGORA_SABOTAGE names the protections to leave out, comma-separated: nudge, fence,
// audit, msgid, epoch. AGORA_SABOTAGE_CLOCK, as in "1h" or "-1h", is added to the machine's clock.
var (
	withNudges = with("nudge")
	withFences = with("fence")
	withAudits = with("audit")
	withIDs    = with("msgid")
	withEpochs = with("epoch")
	clockAhead = ahead()
)

// with tells whether a protection is to be kept. An unknown name in the list is a mistake of the test.
func with(name string) bool {
	list := strings.FieldsFunc(os.Getenv("AGORA_SABOTAGE"), func(r rune) bool { return r == ',' })
	for _, s := range list {
		if !slices.Contains([]string{"nudge", "fence", "audit", "msgid", "epoch"}, s) {
			panic("AGORA_SABOTAGE: no protection is called " + s)
		}
	}
	return !slices.Contains(list, name)
}

func ahead() time.Duration {
	s := os.Getenv("AGORA_SABOTAGE_CLOCK")
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		panic("AGORA_SABOTAGE_CLOCK: " + err.Error())
	}
	return d
}

// wallClock is the machine's clock, moved.
func wallClock() time.Time { return time.Now().Add(clockAhead) }
