package agoratest

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
)

// muchStolen is the share of the processors' time from which on times that a test has measured say nothing.
const muchStolen = 0.1

// Steal tells how much of the machine's processors its host has given to other guests since it was made. A test that
// judges how long something took asks it whether that says anything.
type Steal struct{ stolen, total uint64 }

// WatchSteal returns a Steal that begins now.
func WatchSteal() Steal {
	b, _ := os.ReadFile("/proc/stat") // where there is none nothing is known to be stolen
	line, _, _ := bytes.Cut(b, []byte("\n"))
	var s Steal
	for i, word := range strings.Fields(string(line)) {
		n, _ := strconv.ParseUint(word, 10, 64) // the first is a name
		if i <= 8 {                             // what follows is guests of this machine, counted before
			s.total += n
		}
		if i == 8 {
			s.stolen = n
		}
	}
	return s
}

// Much tells whether a tenth of all processors' time or more was taken since, and logs it then: times are not to be judged.
func (s Steal) Much(t testing.TB) bool {
	t.Helper()
	now := WatchSteal()
	share := float64(now.stolen-s.stolen) / float64(max(1, now.total-s.total))
	if share < muchStolen {
		return false
	}
	t.Logf("the host took %.0f %% of the processors' time meanwhile: times are not judged", 100*share)
	return true
}
