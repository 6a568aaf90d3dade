//go:build chaos

package model

import "testing"

// TestHistoriesOfOverflowingMailboxes: the same where mailboxes hold five records, so that retention passes whoever does
// not read at once. Some of its histories still fail in ways that are not understood: it is for finding out why.
func TestHistoriesOfOverflowingMailboxes(t *testing.T) {
	checks(t, 20, 3)
	s := start(t, 1, 5)
	s.histories(false)
}
