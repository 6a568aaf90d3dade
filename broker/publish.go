package broker

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
)

// Publish stores m outside any lane, for what the cluster itself says: rosters, agent status. key is its idempotency
// key for the whole cluster: a second call with it within the duplicate window stores nothing, on whatever edge. It
// retries until ctx is over, but not so long that a copy could be stored behind the window, and not when the log is
// full. MESSAGE_TOO_LARGE for what [Broker.BoundFrames] leaves out. What may have been stored and be gone again when it
// is sent anew is marked Again.
func (b *Broker) Publish(ctx context.Context, key string, m agora.Message) (seq uint64, err error) {
	return b.PublishFor(ctx, "", key, m)
}

// PublishFor is Publish of what somebody says, whose share of the log it takes: the name of a principal, empty for
// none.
func (b *Broker) PublishFor(ctx context.Context, payer, key string, m agora.Message) (seq uint64, err error) {
	if err := b.frames.check(&m); err != nil {
		return 0, err
	}
	p := jslog.Locate(m.To, b.cfg.Shards)
	w := b.watchers[p.Stream]
	if !w.mayStore(party{m.To.Tenant, payer}, p.Live, len(m.Body)) {
		return 0, errShare()
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Duplicates*3/4)
	defer cancel()
	for tried := false; ; tried = true {
		var a jslog.Ack
		if tried && !m.Again { // a server that has started since knows the keys alone that still stand in its log
			var stands bool
			stands, err = b.log.NothingEvicted(ctx, &p, 0, time.Time{})
			m.Again = err == nil && !stands
		}
		if err == nil {
			msg, bad := b.log.Laneless(p, key, &m)
			if bad != nil {
				return 0, bad
			}
			a, err = b.log.Publish(ctx, msg, b.cfg.Retry)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, jslog.Unavailable(err)
		case err == nil && a.Refused():
			w.stores.refused()
			return 0, jslog.Full()
		case err == nil && a.Err == nil && !a.Absent:
			b.noteStored(p, a, 1)
			return a.Seq << agora.SeqShift, nil
		}
		if err = nil; a.Absent {
			w.stores.refused()
			w.ask(checkLeader)
		}
		b.count.retries.Add(1)
		select {
		case <-time.After(jslog.RetryPause):
		case <-ctx.Done():
			return 0, jslog.Unavailable(ctx.Err())
		case <-b.ctx.Done():
			return 0, jslog.Unavailable(errClosed)
		}
	}
}

// noteStored notes a record that stands outside any lane, or was stored to end one.
func (b *Broker) noteStored(p jslog.Location, a jslog.Ack, parts int) {
	b.watchers[p.Stream].stores.stored()
	if a.Duplicate {
		b.count.duplicates.Add(1)
		b.nudge(p, a.Seq)
		return
	}
	b.count.records.Add(1)
	b.count.parts.Add(uint64(parts))
	b.tails.note(p, a.Seq, time.Now())
}
