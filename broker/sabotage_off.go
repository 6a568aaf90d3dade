//go:build !sabotage

package broker

import "time"

// The protections that keep messages from being lost, doubled or disordered. Here they are constants;
// a build with the tag sabotage can leave each one out, so that tests can show what it is needed for.
const (
	withNudges = true // what the log acknowledges as a duplicate is told to those who listen
	withFences = true // nothing of a past holder lands behind its successor
	withAudits = true // inboxes are compared with the log
	withIDs    = true // a retry carries the id of the first try
	withEpochs = true // a younger epoch in the fence stops a holder
)

// wallClock is the machine's clock.
func wallClock() time.Time { return time.Now() }
