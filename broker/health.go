package broker

import (
	"cmp"
	"slices"

	"github.com/agora-relay/agora/internal/latency"
)

// Health is how the connection to the log has fared.
type Health struct {
	Connected  bool
	Reconnects uint64 // times the connection was there again after a loss
	InBytes    uint64 // read from NATS
	OutBytes   uint64 // written to it
	InMsgs     uint64
	OutMsgs    uint64
}

// Health returns how the connection is; it does not block.
func (b *Broker) Health() Health {
	s := b.nc.Stats()
	return Health{
		Connected: b.nc.IsConnected(), Reconnects: s.Reconnects,
		InBytes: s.InBytes, OutBytes: s.OutBytes, InMsgs: s.InMsgs, OutMsgs: s.OutMsgs,
	}
}

// Shard is one stream of the log, as its leader described it last.
type Shard struct {
	Stream string
	Led    bool   // its leader answered last time
	Bytes  uint64 // kept
	Limit  uint64 // bytes at which it refuses senders
}

// Shards returns the streams by name, as they stood when they were looked at last: a second ago where
// somebody here listens, else up to Config.Audit. It does not block.
func (b *Broker) Shards() []Shard {
	all := make([]Shard, 0, len(b.watchers))
	for _, w := range b.watchers {
		all = append(all, Shard{Stream: w.stream, Led: w.led.Load(), Bytes: w.bytes.Load(), Limit: uint64(max(0, b.cfg.keeps(w.kind).ShardBytes))})
	}
	slices.SortFunc(all, func(a, b Shard) int { return cmp.Compare(a.Stream, b.Stream) })
	return all
}

// ToStored returns how long records took from the first part that was put into a lane to the log's acknowledgement.
func (b *Broker) ToStored() *latency.Histogram { return &b.count.toStored }
