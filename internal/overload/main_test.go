//go:build chaos

package overload

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // thousands of agents are in this process, which shares the machine with what they test
	goleak.VerifyTestMain(m)
}
