//go:build chaos

package reliability

import "time"

// chaos says that there is time for everything: make chaos.
const chaos = true

// rounds is how often all that fails does so, on one cluster.
const rounds = 3

const (
	lease     = 3 * time.Second // of an edge
	timeout   = 6 * time.Second // session.timeout
	heartbeat = time.Second     // session.heartbeat
	silence   = 5 * time.Second // after which agents give up an edge
)
