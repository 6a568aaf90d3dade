package demux

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
)

// read returns the next part of a queue.
func (q *queue) read(ctx context.Context) (Part, error) {
	d := q.demux
	for {
		if d.ctx.Err() != nil {
			return Part{}, q.over()
		}
		d.mu.Lock()
		p, done, err := q.next()
		lagging := q.lagging
		ack := d.toAcknowledge()
		d.mu.Unlock()
		d.tell(ack)
		switch {
		case done:
			return p, err
		case lagging:
			err = q.catchUp(ctx)
		default:
			err = q.wait(ctx)
		}
		if err != nil && d.ctx.Err() == nil {
			return Part{}, err
		}
	}
}

// over returns the error for a reader whose Demux is closed. The next holder of the session continues, but not where
// the reader had all, or what was left was dropped: then it is told what its exchange had ended by.
func (q *queue) over() error {
	q.demux.mu.Lock()
	defer q.demux.mu.Unlock()
	if q.err != nil && q.hand.Seq == 0 && q.parts.len() == 0 && !q.lagging {
		return q.err
	}
	return context.Cause(q.demux.ctx)
}

// wait waits until something has changed.
func (q *queue) wait(ctx context.Context) error {
	select {
	case <-q.ready:
		return nil
	case <-q.demux.ctx.Done():
		return context.Cause(q.demux.ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lag has a queue that is full drop what follows: its reader will find that in the log. One too many is given up. mu is
// held.
func (q *queue) lag(missing uint64) {
	d := q.demux
	if q.of != nil {
		if d.lagging >= d.cfg.Lagging {
			d.stats.GivenUp.Add(1)
			q.of.fail(errTooMany)
			return
		}
		d.lagging++
	}
	d.stats.Lagged.Add(1)
	q.lagging, q.missing = true, missing
	q.through, q.record = d.position.at, d.position.records // up to there nothing of it is missing
}

// catchUp reads a piece of the log for a queue that lags and is empty, or waits until there is more.
func (q *queue) catchUp(ctx context.Context) error {
	d := q.demux
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.ctx, func() { cancel(context.Cause(d.ctx)) })()
	c, pos := q.rereading()
	if c == nil {
		return nil
	}
	ds, err := c.Next(ctx, pullBytes)
	if err != nil {
		return q.retry(ctx, err)
	}
	d.mu.Lock()
	rejoined, lost := q.caught(ds, pos)
	d.mu.Unlock()
	for i := range lost {
		d.cfg.Other(lost[i])
	}
	switch {
	case rejoined != nil:
		rejoined.Close()
	case len(ds) == 0:
		return q.wait(ctx)
	}
	return nil
}

// retry waits for a moment after the log could not be read.
func (q *queue) retry(ctx context.Context, err error) error {
	q.demux.cfg.Log.Debug("reading the log for a reader that lags", "err", err)
	if !pause.For(ctx, firstDelay) {
		return context.Cause(ctx)
	}
	return nil
}

// rereading returns the queue's own reading of the log, nil where it lags no more, and the position up to which all was
// dispatched before.
func (q *queue) rereading() (c *edge.Catchup, pos uint64) {
	d := q.demux
	d.mu.Lock()
	lagging, c, pos, from := q.lagging, q.catchup, d.position.at, q.through
	d.mu.Unlock()
	if !lagging || c != nil {
		return c, pos
	}
	c = d.session.Load().Catchup(from, q.signal)
	d.mu.Lock()
	if q.lagging {
		q.catchup = c
		d.mu.Unlock()
		return c, pos
	}
	d.mu.Unlock()
	c.Close()
	return nil, 0
}

// caught queues what was read of the log. Nothing read means that all up to pos was. Where the queue stands where the
// dispatched does, or beyond, it gets again what comes live, and nothing lies between: both move under mu. Then, or
// where it has come to its end, it returns the reading, which is to be closed. lost are the gaps that the door is to be
// told of.
func (q *queue) caught(ds []edge.Delivery, pos uint64) (over *edge.Catchup, lost []edge.Delivery) {
	d := q.demux
	if !q.lagging {
		return nil, nil
	}
	for i := range ds {
		if m := ds[i].Message; m.Kind == agora.Gap && q.of == nil {
			if lost = append(lost, d.lose(m)...); m.Seq > d.position.at {
				break
			}
			continue
		}
		if q.passes(&ds[i]); q.ended || !q.lagging {
			break
		}
	}
	if len(ds) == 0 {
		q.through = max(q.through, pos)
	}
	switch {
	case !q.lagging:
		return nil, lost
	case q.ended:
	case q.through >= d.position.at || !guard.Rejoins:
		d.stats.Rejoined.Add(1)
	default:
		d.position.weigh(q)
		return nil, lost
	}
	if q.of != nil {
		d.lagging--
	}
	q.lagging, over, q.catchup = false, q.catchup, nil
	d.position.weigh(q)
	return over, lost
}

// passes notes one message of the log.
func (q *queue) passes(v *edge.Delivery) {
	m := v.Message
	switch {
	case m.Kind == agora.Gap:
		if m.Seq >= q.missing {
			q.of.fail(errGap)
			return
		}
	case m.Seq>>agora.SeqShift != q.through>>agora.SeqShift:
		q.record++
	}
	if m.Seq <= q.through {
		return
	}
	if q.takes(m) {
		q.accept(v, q.record)
	}
	q.through = m.Seq
}

// takes reports whether a message belongs into the queue.
func (q *queue) takes(m *agora.Message) bool {
	if !carries(m) || q.of == nil {
		return carries(m) && m.Part == agora.Whole
	}
	return m.Part != agora.Whole && m.From == q.of.name.peer && m.Stream == q.of.name.stream
}

// rereads returns the bytes that its reading of the log holds.
func (q *queue) rereads() int64 {
	if q.catchup == nil {
		return 0
	}
	return int64(q.catchup.Held())
}
