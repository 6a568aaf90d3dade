package broker

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
)

// read returns the next piece of the log. When there is no more of it, the inbox
// is live again, and read returns nothing.
func (i *Inbox) read(ctx context.Context, max int) ([]agora.Message, error) {
	if i.whole {
		i.whole = false
		if i.endsHere(ctx) {
			return nil, nil // to be read from where it then stands, if it is not live
		}
	}
	i.b.count.refills.Add(1)
	at := i.b.Now()
	// The last record that was read is read again: while it is there, nothing after it is gone.
	// It must not use up what the answer may hold.
	q := query{stream: i.at.stream, subject: i.at.log(), seq: i.end, bytes: max + i.endSize}
	if i.end == 0 {
		q.since = i.since
	}
	p, err := i.b.readInTurn(ctx, q)
	if err != nil {
		return nil, err
	}
	g, err := i.gap(ctx, &p)
	if err != nil || g.stop {
		return g.told, err
	}
	msgs := g.told
	for k := range p.msgs {
		msgs = i.accept(msgs, &p.msgs[k])
	}
	i.fresh = false
	if p.whole {
		i.stageFromNow()
	}
	if len(msgs) > 0 || !p.whole {
		i.whole = p.whole
		return msgs, nil
	}
	return nil, i.caughtUp(ctx, at)
}

// endsHere makes the inbox live again where the stream's leader still has the last record that was read, or that came
// live behind it, and nothing beyond, as most who return have missed nothing: then nothing was taken since either, and the log, which costs more, need not be read once more.
// It returns false, and has changed nothing, where the leader has not got that far, or something of that record is still to be read; and
// where there is no leader: replicas can be read all the same.
func (i *Inbox) endsHere(ctx context.Context) (known bool) {
	at := i.b.Now()
	last, err := i.b.lastOf(ctx, i.at.stream, i.at.log())
	if err != nil || last.seq < i.end || last.seq == i.end && i.fresh && last.end() > i.after {
		return false
	}
	if i.live(last, at) { // if not, what was joined comes before what is to be read
		i.fresh = false
	}
	return true
}

// readInTurn reads the log once it is the caller's turn.
func (b *Broker) readInTurn(ctx context.Context, q query) (page, error) {
	select {
	case b.fill <- struct{}{}:
		defer func() { <-b.fill }()
		b.cfg.Turns.Take()
		return b.readLog(ctx, q)
	case <-ctx.Done():
		return page{}, ctx.Err()
	case <-b.ctx.Done():
		return page{}, errClosed
	}
}

// accept appends what a record of the log holds. What was read before is dropped.
func (i *Inbox) accept(msgs []agora.Message, m *logged) []agora.Message {
	if m.seq < i.end || m.seq == i.end && !i.fresh {
		return msgs
	}
	i.mu.Lock()
	i.end, i.tail, i.endSize = m.seq, max(i.tail, m.end()), len(m.body)+headroom
	i.mu.Unlock()
	return i.decode(msgs, m.seq, m.at, m.body)
}

const (
	lagPause  = 10 * time.Millisecond // before a replica that lags is asked again
	maxDoubts = 50                    // then the leader is right: the live record is gone again
)

// caughtUp makes the inbox live again when the stream's leader knows of nothing beyond what was read. A replica
// that lags may have answered the reads, and a live record may have come meanwhile: then there is more to read. The reads
// began at at.
func (i *Inbox) caughtUp(ctx context.Context, at time.Time) error {
	last, err := i.b.lastOf(ctx, i.at.stream, i.at.log())
	if err != nil && !errors.Is(err, errNone) {
		return err
	}
	if i.live(last, at) {
		return nil
	}
	return pauseFor(ctx, lagPause)
}

// live ends the refill if last is the end of what was read; nil means that the subject is empty.
func (i *Inbox) live(last *logged, at time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if last != nil && i.end == 0 && last.at.Before(i.since) {
		i.end, i.tail = last.seq, max(i.tail, last.end()) // all there is was stored before the time asked for
	}
	tail := i.tail
	i.join()
	if last != nil && last.seq > i.end {
		return false
	}
	if i.highest > i.end && i.doubts < maxDoubts {
		i.doubts++
		return false
	}
	i.unstage()
	i.behind, i.staging, i.highest, i.doubts, i.quiet = false, false, i.end, 0, false
	if i.kept, i.keptAt = tail, at; last != nil {
		i.kept = last.end()
	}
	return true
}

// stageFromNow keeps live records from now on: under load the log would else grow faster than its end is read.
func (i *Inbox) stageFromNow() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.staging = true
}

func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
