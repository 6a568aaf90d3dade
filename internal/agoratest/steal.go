package agoratest

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// muchStolen is the share of the processors' time from which on times that a test has measured say nothing.
const muchStolen = 0.1

// mostStolen is the share from which on a process may have stood still for the lease of an edge: 3 s of a test's 10.
const mostStolen = 0.3

// longer is how much longer a test waits where that much is stolen.
const longer = 3

// Steal tells how much of the machine's processors its host has given to other guests since it was made. A test that
// judges how long something took asks it whether that says anything.
type Steal struct{ stolen, total uint64 }

// WatchSteal returns a Steal that begins now.
func WatchSteal() Steal {
	b, _ := os.ReadFile("/proc/stat") // where there is none nothing is known to be stolen
	return parseSteal(b)
}

// parseSteal reads the first line of /proc/stat: a name, then times of all processors since boot, of which the eighth is
// stolen, and what follows is in the others already.
func parseSteal(stat []byte) (s Steal) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	words := strings.Fields(string(line))
	for i := 1; i < min(9, len(words)); i++ {
		n, _ := strconv.ParseUint(words[i], 10, 64)
		s.total += n
		if i == 8 {
			s.stolen = n
		}
	}
	return s
}

// share returns the part of all processors' time that was stolen until then.
func (s Steal) share(then Steal) float64 {
	return float64(then.stolen-s.stolen) / float64(max(1, then.total-s.total))
}

// Much tells whether a tenth of all processors' time or more was taken since, and logs it then: times are not to be judged,
// and what has not come yet may still come.
func (s Steal) Much(t testing.TB) bool {
	t.Helper()
	return s.took(t, muchStolen)
}

// Most tells, and logs, whether so much was taken that refusals say nothing either: an edge that could
// not renew its lease in time must refuse its agents.
func (s Steal) Most(t testing.TB) bool {
	t.Helper()
	return s.took(t, mostStolen)
}

func (s Steal) took(t testing.TB, least float64) bool {
	t.Helper()
	share := s.share(WatchSteal())
	if share < least {
		return false
	}
	t.Logf("the host took %.0f %% of the processors' time meanwhile", 100*share)
	return true
}

// Await polls until a condition holds, and tells whether it did in time; there is more time where others took the processors.
func Await(t testing.TB, within time.Duration, holds func() bool) bool {
	t.Helper()
	steal := WatchSteal()
	return await(within, holds) || steal.Much(t) && await(longer*within, holds)
}
