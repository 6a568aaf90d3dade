package model

import "testing"

// TestHistoriesOnThreeReplicas: the same on a log of three servers that come and go. Where two of them went, what is said waits
// until a leader is elected, some seconds.
func TestHistoriesOnThreeReplicas(t *testing.T) {
	checks(t, 4, 1)
	s := start(t, 3, 4096)
	s.histories(false)
}
