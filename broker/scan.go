package broker

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
)

// scan reads a mailbox behind a fence, for what one session has stored there.
type scan struct {
	b    *Broker
	at   place
	cfg  *LaneConfig
	from uint64 // sequence of the last record of the lane that is known; 0 for none
	id   string // message id of a record whose fate is unknown

	count int64  // records that were read, of whomever
	pos   uint64 // sequence of the last one
	hit   uint64 // where the record of unknown fate stands; 0 for nowhere
	purge bool   // something was dropped by hand
	alive bool   // a record of the lane was there
	r     reader
}

// run gives fold every record of the session that is not void, in order, and returns once it has read as far as the
// stream's leader knew after the fence.
func (s *scan) run(ctx context.Context, fold func(o origin, seq uint64, parts []agora.Message) error) error {
	s.pos = max(s.from, 1) - 1 // the last known record is read again: it shows that nothing after it is gone
	for {
		p, err := s.b.readLog(ctx, query{stream: s.at.stream, subject: s.at.log(), seq: s.pos + 1})
		if err != nil {
			return err
		}
		for i := range p.msgs {
			if err := s.take(&p.msgs[i], fold); err != nil {
				return err
			}
		}
		if !p.whole {
			continue
		}
		last, err := s.b.lastOf(ctx, s.at.stream, s.at.log())
		if errors.Is(err, errNone) || err == nil && last.seq <= s.pos {
			return nil
		}
		if err != nil {
			return err
		}
		// A replica that lags has answered: there is more.
		select {
		case <-time.After(retryPause / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take reads one record.
func (s *scan) take(m *logged, fold func(o origin, seq uint64, parts []agora.Message) error) error {
	s.pos = m.seq
	s.count++
	o, n, err := s.r.open(m.body)
	if err != nil {
		s.b.cfg.Log.Warn("record skipped", "stream", s.at.stream, "seq", m.seq, "err", err)
		return nil
	}
	if _, is := markOf(m.body); is {
		s.purge = true
	}
	if o.session != s.cfg.Session || o.from != s.cfg.From || isVoid(o, m.at) {
		return nil
	}
	parts := make([]agora.Message, n)
	last := ""
	for i := range parts {
		parts[i].Seq = m.seq<<agora.SeqShift | uint64(i)
		if err := s.r.part(&parts[i], last); err != nil {
			s.b.cfg.Log.Warn("record skipped", "stream", s.at.stream, "seq", m.seq, "err", err)
			return nil
		}
		last = parts[i].Stream
	}
	s.alive = true
	if m.id != "" && m.id == s.id {
		s.hit = m.seq
	}
	return fold(o, m.seq, parts)
}

// cut tells whether retention, or an operator, may have taken records that the scan should have seen.
func (s *scan) cut(most int64) bool { return s.count >= most || s.purge }

// aged tells whether all of a stream may have grown too old to be in the log.
func (s *scan) aged(o OpenStream) bool {
	return !o.Since.IsZero() && s.b.Now().Sub(o.Since) >= s.b.cfg.MaxAge-voidAfter
}

// isVoid tells whether a record was stored so late that its sender's lease may have been
// another's by then, and the duplicate table and the fence forgotten. Nobody reads such a record.
func isVoid(o origin, at time.Time) bool {
	return at.Sub(time.UnixMilli(o.validAt)) > voidAfter
}
