package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/agora-relay/agora/broker/jslog"
)

// Cluster returns a name of the cluster that is kept in the log: it is the same at every edge, and no other cluster has it. It does not block.
func (b *Broker) Cluster() string {
	made := b.streams.madeAt(jslog.StreamName(jslog.BookKind, ""))
	sum := sha256.Sum256([]byte("cluster " + strconv.FormatInt(made.UnixNano(), 10)))
	return hex.EncodeToString(sum[:8])
}
