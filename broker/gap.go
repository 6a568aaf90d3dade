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
	told  []agora.Message // a gap, or nothing
	again bool            // the piece is not to be used: the log is read again
	wait  time.Duration   // before that
}

// gap finds out whether retention may have taken something between the inbox's position and the piece of the log that
// was read there, and moves the inbox behind that. The piece may show that nothing is missing; else the stream's leader
// is asked, unless it knows less than was read here.
func (i *Inbox) gap(ctx context.Context, p *jslog.Page) (gapCheck, error) {
	if i.adjoins(p) {
		return gapCheck{}, nil
	}
	if i.end.seq > 0 {
		m, err := i.b.log.At(ctx, i.at.Stream, i.end.seq)
		if err == nil && m.Subject == i.at.Log() { // the replica that answered lags behind the leader
			return gapCheck{again: true, wait: jslog.LagPause}, nil
		}
		if err != nil && !errors.Is(err, jslog.ErrNone) {
			return gapCheck{}, err
		}
	}
	s, err := i.b.log.State(ctx, i.at.Stream, i.at.Log())
	switch {
	case err != nil:
		return gapCheck{}, err
	case i.end.seq > s.Last && !i.reading.believes(agora.Ticks(), i.b.cfg.lag):
		return gapCheck{again: true, wait: jslog.RetryPause}, nil
	case i.end.seq > s.Last: // the log was made again and counts from below: its first record is next
		g, err := i.tellGap(ctx, p, s, 1)
		i.restart()
		g.again = true
		return g, err
	case i.mayHaveLost(s, p):
		return i.tellGap(ctx, p, s, i.cursor()+1)
	}
	return gapCheck{}, nil
}

// adjoins reports whether a piece of the log shows by itself that nothing is missing in front of it. Sequences are
// shared by a whole stream, so a hole in them says nothing. But while the record of the position itself is there,
// nothing after it is gone.
func (i *Inbox) adjoins(p *jslog.Page) bool {
	switch had := i.had(); {
	case i.end.seq == 0: // it did not overflow, and nobody knows more
		return had.at.IsZero() && p.Count() < i.b.cfg.MaxRecords
	case len(p.Records) == 0:
		return false
	case p.Records[0].Seq <= i.end.seq || p.Records[0].Seq == i.end.seq+1 && !i.mayLackRest(had):
		i.reading.short = 0
		return true
	}
	_, is := record.Mark(p.Records[0].Body) // it says itself whether anything is missing before it
	return is
}

// mayLackRest reports whether the record of the position may have more parts than its reader has had.
func (i *Inbox) mayLackRest(had inboxComplete) bool {
	r := &i.reading
	return r.state.fresh() && r.after&(record.MaxParts-1) != record.MaxParts-1 && r.after != had.tail
}

// mayHaveLost reports whether retention may have taken something that the inbox has not got: something that was stored
// behind its position, whose record is gone, or, where it has none, since it had everything. s is the leader's word, p
// what was read.
func (i *Inbox) mayHaveLost(s jslog.State, p *jslog.Page) bool {
	had, full := i.had(), s.Count >= i.b.cfg.MaxRecords
	// What was sent since it had everything may have grown too old, unless presence knows that it was nothing.
	aged := !i.reading.quiet && (i.b.log.Forgets(had.at) || s.Created.After(had.at))
	switch {
	case i.end.seq == 0: // if all that is kept was read, none of it is older than the time from which it was
		return full && p.Count() >= s.Count || aged && !had.at.IsZero()
	case i.cursor() < had.tail: // something stood there, if only the rest of the record of the position
		return true
	case i.end.seq == s.Last: // nothing was stored since in the whole stream
		return false
	}
	return full || aged // one that is full has overflowed: else the record of a position at its end would be there
}

// had returns when the inbox was last known to have had everything. One that begins at a time, and has read nothing
// yet, wants nothing from before.
func (i *Inbox) had() inboxComplete {
	i.mu.Lock()
	defer i.mu.Unlock()
	had := i.complete
	if r := &i.reading; r.state.fresh() && !r.since.IsZero() {
		had.at = r.since
	}
	return had
}

// cursor is the position up to which everything was returned; 0 where the inbox has none.
func (i *Inbox) cursor() uint64 {
	switch r := &i.reading; {
	case i.end.seq == 0:
		return 0
	case r.state.fresh():
		return r.after
	}
	return i.end.seq<<agora.SeqShift | (record.MaxParts - 1)
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

// restart has the log read from its beginning.
func (i *Inbox) restart() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.end, i.complete = inboxEnd{}, inboxComplete{}
	r := &i.reading
	r.since, r.after, r.passed, r.short = time.Time{}, 0, 0, 0
	r.hears(readMoves)
}

// tellGap returns a gap from a position to right before the first record there is, and moves the inbox there.
func (i *Inbox) tellGap(ctx context.Context, p *jslog.Page, s jslog.State, from uint64) (gapCheck, error) {
	to := s.Last // all of the subject that stood up to here is gone, if the leader has none of it
	if len(p.Records) > 0 {
		to = p.Records[0].Seq - 1
	} else if m, err := i.b.log.Next(ctx, i.at.Stream, i.at.Log(), 1); err == nil {
		if m.Seq > i.end.seq && i.end.seq <= s.Last { // the replica that answered lags
			return gapCheck{again: true, wait: jslog.LagPause}, nil
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
	i.reading.after, i.reading.passed = g.Seq, max(i.reading.passed, g.Seq)
	if to == s.Last && s.Count == 0 { // that is all there was, until what others are sent grows too old as well
		i.complete.tail, i.complete.at = g.Seq, s.At
	}
	i.mu.Unlock()
	i.b.count.gaps.Add(1)
	return gapCheck{told: []agora.Message{g}}, nil
}
