package broker

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
)

// Publish stores m outside any lane, for what the cluster itself says: rosters, agent status. key is its idempotency
// key for the whole cluster: a second call with it within the duplicate window stores nothing, on whatever edge. It
// retries until ctx is over, but not so long that a copy could be stored behind the window, and not when the log is
// full. MESSAGE_TOO_LARGE for what [Broker.BoundFrames] leaves out. What may have been stored and be gone again when it
// is sent again is marked Again.
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
		a, err := b.publishOnce(ctx, p, key, &m, tried)
		refusal, refused := errors.AsType[*agora.Error](err)
		switch {
		case refused:
			return 0, refusal
		case err != nil && ctx.Err() != nil:
			return 0, jslog.Unavailable(err)
		case err != nil:
		case a.Refused():
			w.stores.refused()
			return 0, jslog.Full()
		case a.Absent:
			w.stores.refused()
			w.ask(checkLeader)
		case a.Err == nil:
			b.noteStored(p, a, 1)
			return a.Seq << agora.SeqShift, nil
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

// publishOnce publishes m outside any lane, and returns the server's answer, or an *agora.Error where m can't be
// stored. A server that has started since it was published first knows the keys alone that still stand in its log:
// again, m is marked if it may have been stored and be gone again.
func (b *Broker) publishOnce(ctx context.Context, p jslog.Location, key string, m *agora.Message, anew bool) (jslog.Ack, error) {
	if anew && !m.Again {
		stands, err := b.log.NothingEvicted(ctx, &p, 0, time.Time{})
		if err != nil {
			return jslog.Ack{}, err
		}
		m.Again = !stands
	}
	msg, err := b.log.Laneless(p, key, m)
	if err != nil {
		return jslog.Ack{}, err
	}
	return b.log.Publish(ctx, msg, b.cfg.Retry)
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
