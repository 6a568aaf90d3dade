//go:build !chaos

package reliability

import "time"

// chaos says that there is time for everything; see chaos_test.go.
const chaos = false

// rounds is how often all that fails does so.
const rounds = 1

// Nothing that is played here waits for either, so they are longer than any machine stands still.
const (
	lease   = 8 * time.Second // of an edge
	timeout = time.Minute     // session.timeout
)
