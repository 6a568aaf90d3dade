//go:build chaos

package model

import "testing"

// histories is how many a test plays.
const histories = 60

// TestHistoriesOnThreeReplicas: the same on a log of three servers that come and go. Where two of them went, what is said waits
// until a leader is elected, some seconds.
func TestHistoriesOnThreeReplicas(t *testing.T) {
	t.Parallel()
	s := start(t, 3, 4096)
	s.histories(false)
}
