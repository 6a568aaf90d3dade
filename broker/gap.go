package broker

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
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
func (i *Inbox) gap(ctx context.Context, p *page) (gapCheck, error) {
	if i.end == 0 {
		return i.gapSince(ctx, p)
	}
	if len(p.msgs) > 0 && p.msgs[0].seq <= i.end+1 {
		i.short = 0
		return gapCheck{}, nil
	}
	if len(p.msgs) > 0 {
		if _, is := record.Mark(p.msgs[0].body); is { // it says itself whether anything is missing before it
			return gapCheck{}, nil
		}
	}
	m, err := i.b.log.at(ctx, i.at.stream, i.end)
	if err == nil && m.subject == i.at.log() { // the replica that answered lags behind the leader
		return gapCheck{stop: true, wait: lagPause}, nil
	}
	if err != nil && !errors.Is(err, errNone) {
		return gapCheck{}, err
	}
	s, err := i.b.log.state(ctx, i.at.stream, i.at.log())
	if err != nil {
		return gapCheck{}, err
	}
	if i.end > s.last { // the log was made anew and counts from below: go on from its first record
		if !i.believes(agora.Ticks()) {
			return gapCheck{stop: true, wait: retryPause}, nil
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
func (i *Inbox) believes(now int64) bool {
	if i.short == 0 {
		i.short = now
	}
	return time.Duration(now-i.short) >= i.b.cfg.lag
}

// cursor is the position up to which everything was returned.
func (i *Inbox) cursor() uint64 {
	if i.fresh {
		return i.after
	}
	return i.end<<agora.SeqShift | (record.MaxParts - 1)
}

// restart has the log read from its beginning.
func (i *Inbox) restart() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.end, i.tail, i.after, i.fresh, i.highest = 0, 0, 0, false, 0
	i.passed = 0
	i.since, i.kept, i.keptAt, i.short = time.Time{}, 0, time.Time{}, 0
}

// mayHaveLost reports whether loss can't be excluded, the record of the position being gone.
func (i *Inbox) mayHaveLost(s streamState) bool {
	i.mu.Lock()
	kept, at := i.kept, i.keptAt
	i.mu.Unlock()
	switch {
	case i.end == s.last: // nothing was stored since in the whole stream
		return false
	case i.cursor() < kept: // something is known to have stood between them
		return true
	case s.count >= i.b.cfg.MaxRecords: // it overflowed, however quiet it was held to be: the record of a position at its end would be there
		return true
	case i.quiet:
		return false
	}
	return i.b.log.forgets(at) || s.created.After(at)
}

// gapSince is gap for an inbox that has got nothing yet: it begins at a time, or at the beginning of a
// mailbox that was empty when it was looked at last.
func (i *Inbox) gapSince(ctx context.Context, p *page) (gapCheck, error) {
	since := i.since
	if since.IsZero() || !i.fresh {
		i.mu.Lock()
		since = i.keptAt
		i.mu.Unlock()
	}
	read := int64(len(p.msgs) + p.pending)
	if since.IsZero() && read < i.b.cfg.MaxRecords {
		return gapCheck{}, nil // it did not overflow, and nobody knows more
	}
	s, err := i.b.log.state(ctx, i.at.stream, i.at.log())
	if err != nil {
		return gapCheck{}, err
	}
	overflowed := read >= s.count && s.count >= i.b.cfg.MaxRecords // none of those kept is older than the time
	aged := !since.IsZero() && !i.quiet && (i.b.log.forgets(since) || s.created.After(since))
	if aged || overflowed {
		return i.tellGap(ctx, p, s, 1)
	}
	return gapCheck{}, nil
}

// tellGap returns a gap from a position to right before the first record there is, and moves the inbox there.
func (i *Inbox) tellGap(ctx context.Context, p *page, s streamState, from uint64) (gapCheck, error) {
	to := s.last // all of the subject that stood up to here is gone, if the leader has none of it
	if len(p.msgs) > 0 {
		to = p.msgs[0].seq - 1
	} else if m, err := i.b.log.nextOf(ctx, i.at.stream, i.at.log(), 1); err == nil {
		if m.seq > i.end && i.end <= s.last { // the replica that answered lags
			return gapCheck{stop: true, wait: lagPause}, nil
		}
		to = m.seq - 1
	} else if !errors.Is(err, errNone) {
		return gapCheck{}, err
	}
	g := agora.Message{Kind: agora.Gap, To: i.to, N: from, Seq: to<<agora.SeqShift | (record.MaxParts - 1)}
	if g.Seq < g.N {
		return gapCheck{}, nil
	}
	i.mu.Lock()
	i.end, i.endSize, i.tail = to, 0, max(i.tail, g.Seq)
	i.after, i.fresh, i.passed = g.Seq, false, max(i.passed, g.Seq)
	if to == s.last && s.count == 0 { // that is all there was, until what others are sent grows too old as well
		i.kept, i.keptAt = g.Seq, s.at
	}
	i.mu.Unlock()
	i.b.count.gaps.Add(1)
	return gapCheck{told: []agora.Message{g}}, nil
}
