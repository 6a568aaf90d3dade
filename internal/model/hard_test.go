//go:build chaos

package model

import "testing"

// TestHistoriesOnThreeReplicas: the same on a log of three servers that come and go. Now and then a sender's messages
// are not stored for longer than the test waits, and nothing is lost by it: that is not understood yet.
func TestHistoriesOnThreeReplicas(t *testing.T) {
	checks(t, 10, 2)
	s := start(t, 3, 4096)
	s.histories(false)
}

// TestHistoriesOfOverflowingMailboxes: the same where mailboxes hold five records, so that retention passes whoever does
// not read at once. Some of its histories still fail in ways that are not understood: it is for finding out why.
func TestHistoriesOfOverflowingMailboxes(t *testing.T) {
	checks(t, 20, 3)
	s := start(t, 1, 5)
	s.histories(false)
}
