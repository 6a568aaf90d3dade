package broker

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
)

// gapCheck is what is to be told in front of a piece of the log.
type gapCheck struct {
	told []agora.Message // a gap, or nothing
	stop bool            // the piece is not to be used: read again
	wait time.Duration   // before that
}

// gap reports whether retention may have taken something between the inbox's position and
// the piece of the log that was read there. Sequences are shared by a whole stream, so a hole in them
// says nothing. But while the record of the position itself is there, nothing after it is gone.
func (i *Inbox) gap(ctx context.Context, p *jslog.Page) (gapCheck, error) {
	if i.end.seq == 0 {
		return i.gapSince(ctx, p)
	}
	if len(p.Records) > 0 && (p.Records[0].Seq <= i.end.seq || p.Records[0].Seq == i.end.seq+1 && !i.mayLackRest()) {
		i.reading.short = 0
		return gapCheck{}, nil
	}
	if len(p.Records) > 0 {
		if _, is := record.Mark(p.Records[0].Body); is { // it says itself whether anything is missing before it
			return gapCheck{}, nil
		}
	}
	m, err := i.b.log.At(ctx, i.at.Stream, i.end.seq)
	if err == nil && m.Subject == i.at.Log() { // the replica that answered lags behind the leader
		return gapCheck{stop: true, wait: jslog.LagPause}, nil
	}
	if err != nil && !errors.Is(err, jslog.ErrNone) {
		return gapCheck{}, err
	}
	s, err := i.b.log.State(ctx, i.at.Stream, i.at.Log())
	if err != nil {
		return gapCheck{}, err
	}
	if i.end.seq > s.Last { // the log was made anew and counts from below: go on from its first record
		if !i.reading.believes(agora.Ticks(), i.b.cfg.lag) {
			return gapCheck{stop: true, wait: jslog.RetryPause}, nil
		}
		g, err := i.tellGap(ctx, p, s, 1)
		i.restart()
		g.stop = true
		return g, err
	}
	if !i.mayHaveLost(s) {
		return gapCheck{}, nil
	}
	return i.tellGap(ctx, p, s, i.cursor()+1)
}

// leaderLag is how long a leader may know less than it is bound by: a new one leads before it has applied what the
// old one stored. Taken at its word, it would have a whole mailbox delivered again.
const leaderLag = 2 * time.Second

// believes reports whether the leader's word that the log ends before what was read here has stood for long enough.
func (r *inboxReading) believes(now int64, lag time.Duration) bool {
	if r.short == 0 {
		r.short = now
	}
	return time.Duration(now-r.short) >= lag
}

// cursor is the position up to which everything was returned.
func (i *Inbox) cursor() uint64 {
	if i.reading.fresh {
		return i.reading.after
	}
	return i.end.seq<<agora.SeqShift | (record.MaxParts - 1)
}

// restart has the log read from its beginning.
func (i *Inbox) restart() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.end.seq, i.end.tail, i.reading.after, i.reading.fresh, i.end.highest = 0, 0, 0, false, 0
	i.reading.passed = 0
	i.reading.since, i.complete.tail, i.complete.at, i.reading.short = time.Time{}, 0, time.Time{}, 0
}

// mayLackRest reports whether the record of the position may have more parts than its reader has had.
func (i *Inbox) mayLackRest() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reading.fresh && i.reading.after&(record.MaxParts-1) != record.MaxParts-1 && i.reading.after != i.complete.tail
}

// mayHaveLost reports whether loss can't be excluded, the record of the position being gone.
func (i *Inbox) mayHaveLost(s jslog.State) bool {
	i.mu.Lock()
	kept, at := i.complete.tail, i.complete.at
	i.mu.Unlock()
	switch {
	case i.cursor() < kept: // something is known to have stood between them, if only the rest of the position's own record
		return true
	case i.end.seq == s.Last: // nothing was stored since in the whole stream
		return false
	case s.Count >= i.b.cfg.MaxRecords: // it overflowed, however quiet it was held to be: the record of a position at its end would be there
		return true
	case i.reading.quiet:
		return false
	}
	return i.b.log.Forgets(at) || s.Created.After(at)
}

// gapSince is gap for an inbox that has got nothing yet: it begins at a time, or at the beginning of a
// mailbox that was empty when it was looked at last.
func (i *Inbox) gapSince(ctx context.Context, p *jslog.Page) (gapCheck, error) {
	since := i.reading.since
	if since.IsZero() || !i.reading.fresh {
		i.mu.Lock()
		since = i.complete.at
		i.mu.Unlock()
	}
	read := int64(len(p.Records) + p.Pending)
	if since.IsZero() && read < i.b.cfg.MaxRecords {
		return gapCheck{}, nil // it did not overflow, and nobody knows more
	}
	s, err := i.b.log.State(ctx, i.at.Stream, i.at.Log())
	if err != nil {
		return gapCheck{}, err
	}
	overflowed := read >= s.Count && s.Count >= i.b.cfg.MaxRecords // none of those kept is older than the time
	aged := !since.IsZero() && !i.reading.quiet && (i.b.log.Forgets(since) || s.Created.After(since))
	if aged || overflowed {
		return i.tellGap(ctx, p, s, 1)
	}
	return gapCheck{}, nil
}

// tellGap returns a gap from a position to right before the first record there is, and moves the inbox there.
func (i *Inbox) tellGap(ctx context.Context, p *jslog.Page, s jslog.State, from uint64) (gapCheck, error) {
	to := s.Last // all of the subject that stood up to here is gone, if the leader has none of it
	if len(p.Records) > 0 {
		to = p.Records[0].Seq - 1
	} else if m, err := i.b.log.Next(ctx, i.at.Stream, i.at.Log(), 1); err == nil {
		if m.Seq > i.end.seq && i.end.seq <= s.Last { // the replica that answered lags
			return gapCheck{stop: true, wait: jslog.LagPause}, nil
		}
		to = m.Seq - 1
	} else if !errors.Is(err, jslog.ErrNone) {
		return gapCheck{}, err
	}
	g := agora.Message{Kind: agora.Gap, To: i.to, N: from, Seq: to<<agora.SeqShift | (record.MaxParts - 1)}
	if g.Seq < g.N {
		return gapCheck{}, nil
	}
	i.mu.Lock()
	i.end.seq, i.end.size, i.end.tail = to, 0, max(i.end.tail, g.Seq)
	i.reading.after, i.reading.fresh, i.reading.passed = g.Seq, false, max(i.reading.passed, g.Seq)
	if to == s.Last && s.Count == 0 { // that is all there was, until what others are sent grows too old as well
		i.complete.tail, i.complete.at = g.Seq, s.At
	}
	i.mu.Unlock()
	i.b.count.gaps.Add(1)
	return gapCheck{told: []agora.Message{g}}, nil
}
