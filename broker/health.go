package broker

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

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

// Stats counts what a Broker did since it was made.
type Stats struct {
	Records    uint64        // stored by lanes and Publish
	Parts      uint64        // stored in them
	Duplicates uint64        // parts that were stored before
	Retries    uint64        // publishes sent again
	Refusals   uint64        // parts refused: they could not follow or the log took nothing
	Fences     uint64        // lanes that fenced and looked into the log
	Deposed    uint64        // lanes lost to a younger epoch
	Delivered  uint64        // messages returned by Next
	Refills    uint64        // reads of the log for an inbox
	Gaps       uint64        // gaps told
	Dropped    uint64        // live records not queued because an inbox lagged or was full
	Repaired   uint64        // inboxes that an audit found lagging
	Void       uint64        // records skipped because they were stored too late
	Lanes      int64         // open now
	Inboxes    int64         // open now
	Skew       time.Duration // how far the machine's clock is ahead of the log's time
}

// counters are the Broker's side of [Stats]. They have lines of the cache to themselves:
// what is counted with every record must not slow down who only reads what stands beside it.
type counters struct {
	_                                                              [64]byte
	records, parts, duplicates, retries, refusals, fences, deposed atomic.Uint64
	delivered, refills, gaps, dropped, repaired, void              atomic.Uint64
	lanes, inboxes                                                 atomic.Int64
	toStored                                                       latency.Histogram
	_                                                              [64]byte
}

// Stats returns the counters; it may be called at any time.
func (b *Broker) Stats() Stats {
	c := &b.count
	return Stats{
		Records: c.records.Load(), Parts: c.parts.Load(), Duplicates: c.duplicates.Load(),
		Retries: c.retries.Load(), Refusals: c.refusals.Load(), Fences: c.fences.Load(),
		Deposed: c.deposed.Load(), Delivered: c.delivered.Load(), Refills: c.refills.Load(),
		Gaps: c.gaps.Load(), Dropped: c.dropped.Load(), Repaired: c.repaired.Load(),
		Void: c.void.Load(), Lanes: c.lanes.Load(), Inboxes: c.inboxes.Load(), Skew: b.clock.Skew(),
	}
}
