package broker

import (
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/latency"
)

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
