//go:build oneseed

package simcluster

import (
	"sync"
	"sync/atomic"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nuid"
)

// setOneSeed has one seed decide everything. It is to be called in the bubble: what is drawn elsewhere is not the
// seed's.
func setOneSeed(seed uint64) {
	setSeed(seed)
	names.Lock()
	defer names.Unlock()
	names.NUID = nuid.New()
	connections.Store(0)
}

// setSeed is the runtime's: see internal/oneseed.
//
//go:linkname setSeed runtime.setOneSeed
func setSeed(seed uint64)

// names makes the names of clients of the log, from a beginning that is drawn when a process starts.
//
//go:linkname names github.com/nats-io/nuid.globalNUID
var names *struct {
	sync.Mutex
	*nuid.NUID
}

// connections numbers the connections of clients of presence, which keep them in maps.
//
//go:linkname connections github.com/redis/go-redis/v9/internal/pool.connIDCounter
var connections atomic.Uint64

// exact tells that a history is the same whenever it is played.
const exact = true
