package ws

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// names makes connection ids: "ws-" and digits, unique in the cluster. Two
// edges would have to draw the same number at their start and take a
// connection in the same microsecond to give one twice.
type names struct {
	edge uint64
	next atomic.Uint64
}

func newNames() *names { return &names{edge: rand.Uint64N(10_000)} }

func (n *names) name() string {
	return fmt.Sprintf("ws-%d%04d%03d", time.Now().UnixMicro(), n.edge, n.next.Add(1)%1000)
}
