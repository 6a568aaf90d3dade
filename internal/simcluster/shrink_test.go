package simcluster

import (
	"regexp"
	"slices"
	"time"
)

// shrink makes a plan that fails as short as it still fails in the same way, as far as it gets within a time, and
// returns what comes of it then.
func shrink(env []string, failed Result, within time.Duration) Result {
	end := time.Now().Add(within)
	why := kindOf(failed)
	for size := len(failed.Plan.Steps) / 2; size > 0; {
		shorter := false
		for from := 0; from < len(failed.Plan.Steps) && time.Now().Before(end); {
			plan := failed.Plan
			plan.Steps = slices.Delete(slices.Clone(plan.Steps), from, min(from+size, len(plan.Steps)))
			if len(plan.Steps) == 0 {
				break
			}
			if r := playOnce(env, plan); kindOf(r) == why {
				failed, shorter = r, true
				continue
			}
			from += size
		}
		if time.Now().After(end) {
			break
		}
		if !shorter || size > 1 {
			size /= 2
		}
	}
	return failed
}

var numbers = regexp.MustCompile(`[0-9][0-9.]*|[a-z][0-9-]+\b`)

// kindOf says in which way a history fails; "" where it does not.
func kindOf(r Result) string {
	if len(r.Failures) == 0 {
		return ""
	}
	first := r.Failures[0]
	return numbers.ReplaceAllString(first[:min(len(first), 60)], "#")
}
