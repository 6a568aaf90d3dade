package member

import (
	"log/slog"
	"sync"
	"time"
)

// quietTime is between two lines of the log that say the same of one server.
const quietTime = time.Minute

// throttle logs what a server writes that is no message, which may be any number of times: the first, and then one a
// quietTime, which says how many there were.
type throttle struct {
	log *slog.Logger

	mu     sync.Mutex // guards the fields below
	last   time.Time  // when it was logged last
	silent int        // how often it was not since
}

func newThrottle(log *slog.Logger) *throttle { return &throttle{log: log} }

// tell logs the warning and why it is given, unless it was logged a moment ago.
func (t *throttle) tell(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if !t.last.IsZero() && now.Sub(t.last) < quietTime {
		t.silent++
		return
	}
	t.log.Warn("the tool server has written what is no message", "why", why, "before", t.silent)
	t.last, t.silent = now, 0
}
