package ownership

import (
	"errors"
	"time"

	"github.com/agora-relay/agora/broker"
)

// absence is how often, and since when, nobody was there under a name.
type absence struct {
	times int
	since time.Time
}

// absentFor is for how long nobody must be there: interest spreads asynchronously between servers.
const absentFor = 300 * time.Millisecond

// record takes the outcome of a question, and reports whether nobody has been there for long enough.
func (s *absence) record(err error) bool {
	if !errors.Is(err, broker.ErrNoEdge) {
		*s = absence{}
		return false
	}
	if s.times++; s.times == 1 {
		s.since = time.Now()
	}
	return s.times >= 3 && time.Since(s.since) >= absentFor
}
