//go:build !chaos

package reliability

import "time"

// chaos says that there is time for everything; see chaos_test.go.
const chaos = false

// rounds is how often all that fails does so.
const rounds = 1

// Nothing that is played here waits for these, so they are longer than a machine stands still.
const (
	lease     = 16 * time.Second // of an edge, which renews it within a fifth of that
	timeout   = 2 * time.Minute  // session.timeout
	heartbeat = time.Minute      // session.heartbeat: a Go client gives up an edge that is silent for one and a half
	silence   = 90 * time.Second // after which other agents do
)
