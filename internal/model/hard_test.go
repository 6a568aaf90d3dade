//go:build chaos

package model

import "testing"

// TestHistoriesOnThreeReplicas: the same on a log of three servers that come and go. Where two of them went, what is said waits
// until a leader is elected, some seconds.
func TestHistoriesOnThreeReplicas(t *testing.T) {
	checks(t, 10, 2)
	s := start(t, 3, 4096)
	s.histories(false)
}

// TestHistoriesOfOverflowingMailboxes: the same where mailboxes hold five records, so that retention passes whoever does
// not read at once.
func TestHistoriesOfOverflowingMailboxes(t *testing.T) {
	checks(t, 20, 3)
	s := start(t, 1, 5)
	s.histories(false)
}
