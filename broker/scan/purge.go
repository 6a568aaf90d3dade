package scan

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/pause"
)

// A mark is a record of one part of Kind Gap, which a purge leaves: everything before it was dropped. Its N is the
// position of the last part that was, and the mark was stored right behind that, which the log has checked. So a reader
// that meets it knows whether it has read all that is gone; if not it tells a gap, up to the mark, where it continues
// from.

// markTries bounds how often a purge starts over because something was stored meanwhile.
const markTries = 50

// Purge drops what the log keeps for an address, if any of that stands behind after, the position up to
// which its owner has read; it returns how many records were not read yet. The owner is told
// by a gap when it reads next, unless it has read all that was dropped by then. Anyone who dies in between has dropped
// nothing that was not read: the mark comes first, and says nothing to who has read what is in front of it.
func (s *Scanner) Purge(ctx context.Context, to agora.Address, after uint64) (unread int, err error) {
	p := jslog.Locate(to, s.cfg.Shards)
	first, err := s.firstUnread(ctx, p, after)
	if err != nil || first == 0 {
		return 0, err
	}
	mark, err := s.mark(ctx, p, to)
	if err != nil {
		return 0, err
	}
	if _, err := s.log.Drop(ctx, p, first); err != nil { // what is read: apart, so that the server counts the rest
		return 0, err
	}
	return s.log.Drop(ctx, p, mark)
}

// Forget drops what the log keeps for an address before a position, all of it where that is 0, and tells nobody: for
// answer boxes, whose reader has read it. What is stored meanwhile stays where a position is given.
func (s *Scanner) Forget(ctx context.Context, to agora.Address, before uint64) error {
	p := jslog.Locate(to, s.cfg.Shards)
	_, err := s.log.Drop(ctx, p, before>>agora.SeqShift)
	return err
}

// firstUnread returns the sequence of the first record that has a message behind a position; 0 where there is none. A
// mark is no message.
func (s *Scanner) firstUnread(ctx context.Context, p jslog.Location, after uint64) (uint64, error) {
	for seq := max(after>>agora.SeqShift, 1); ; {
		page, err := s.log.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log(), Seq: seq, Batch: 8})
		if err != nil {
			return 0, jslog.Unavailable(err)
		}
		for i := range page.Records {
			m := &page.Records[i]
			if _, is := record.Mark(m.Body); !is && m.End() > after {
				return m.Seq, nil
			}
			seq = m.Seq + 1
		}
		if page.Whole {
			return 0, nil
		}
	}
}

// mark stores a mark right behind the last record, and returns its sequence.
func (s *Scanner) mark(ctx context.Context, p jslog.Location, to agora.Address) (seq uint64, err error) {
	var upTo uint64
	for range markTries {
		last, err := s.log.Last(ctx, p.Stream, p.Log())
		if err != nil {
			return 0, jslog.Unavailable(err)
		}
		if n, is := record.Mark(last.Body); is && n == upTo {
			return last.Seq, nil // an answer was lost, or a refusal was none
		}
		upTo = last.End()
		msg, err := s.log.Laneless(p, "purge/"+strconv.FormatUint(last.Seq, 10), &agora.Message{Kind: agora.Gap, N: upTo, To: to})
		if err != nil {
			return 0, err
		}
		msg.Header[jslog.ExpectedLast] = []string{strconv.FormatUint(last.Seq, 10)}
		a, err := s.log.Publish(ctx, msg, s.cfg.Retry)
		switch {
		case err == nil && a.Refused():
			return 0, jslog.Full()
		case err == nil && a.Err == nil && !a.Absent:
			s.cfg.Stored(p, a, 1)
			return a.Seq, nil
		}
		if !pause.For(ctx, jslog.LagPause) {
			return 0, jslog.Unavailable(ctx.Err())
		}
	}
	return 0, jslog.Unavailable(errors.New("too much is stored meanwhile"))
}

// Mailbox is what the log keeps for an address.
type Mailbox struct {
	Stream  string
	Records int64
	First   uint64 // position of the first part that is kept, and when it was stored; 0 where there is none
	FirstAt time.Time
	Last    uint64 // the same of the last one
	LastAt  time.Time
}

// Mailbox tells how an address's log stands, by the word of its stream's leader: three questions.
func (s *Scanner) Mailbox(ctx context.Context, to agora.Address) (Mailbox, error) {
	p := jslog.Locate(to, s.cfg.Shards)
	m := Mailbox{Stream: p.Stream}
	now, err := s.log.State(ctx, p.Stream, p.Log())
	if err != nil {
		return m, jslog.Unavailable(err)
	}
	m.Records = now.Count
	first, err := s.log.Next(ctx, p.Stream, p.Log(), 1)
	if err == nil {
		m.First, m.FirstAt = first.Seq<<agora.SeqShift, first.At
	} else if !errors.Is(err, jslog.ErrNone) {
		return m, jslog.Unavailable(err)
	}
	last, err := s.log.Last(ctx, p.Stream, p.Log())
	if err == nil {
		m.Last, m.LastAt = last.End(), last.At
	} else if !errors.Is(err, jslog.ErrNone) {
		return m, jslog.Unavailable(err)
	}
	return m, nil
}
