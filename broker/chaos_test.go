//go:build chaos

package broker

import "testing"

// There is time for many random histories: make chaos.
const (
	histories = 40   // of faults on one server
	resumes   = 1000 // of a listener, on another node each time
	takeovers = 300  // with a late record that lands at any moment
)

// TestEachMessageOnceAndInOrderInACluster has leaders step down all the time.
func TestEachMessageOnceAndInOrderInACluster(t *testing.T) {
	for seed := range uint64(histories / 4) {
		runWorld(t, seed, 3, 150)
	}
}
