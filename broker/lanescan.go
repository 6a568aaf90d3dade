package broker

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
)

// scan reads a mailbox behind a fence, for what one session has stored there.
type scan struct {
	b    *Broker
	at   jslog.Location
	cfg  *LaneConfig
	from uint64 // sequence of the last record of the lane that is known; 0 for none
	id   string // message id of a record whose fate is unknown

	count int64  // records that were read, of whomever
	pos   uint64 // sequence of the last one
	hit   uint64 // where the record of unknown fate stands; 0 for nowhere
	purge bool   // something was dropped by hand
	alive bool   // a record of the lane was there
	r     record.Reader
}

// run gives fold every record of the session that is not void, in order, and returns once it has read as far as the
// stream's leader knew after the fence.
func (s *scan) run(ctx context.Context, fold func(o record.Origin, seq uint64, parts []agora.Message) error) error {
	s.pos = max(s.from, 1) - 1 // the last known record is read again: it shows that nothing after it is gone
	for {
		p, err := s.b.log.Read(ctx, jslog.Query{Stream: s.at.Stream, Subject: s.at.Log(), Seq: s.pos + 1})
		if err != nil {
			return err
		}
		for i := range p.Records {
			if err := s.take(&p.Records[i], fold); err != nil {
				return err
			}
		}
		if !p.Whole {
			continue
		}
		last, err := s.b.log.Last(ctx, s.at.Stream, s.at.Log())
		if errors.Is(err, jslog.ErrNone) || err == nil && last.Seq <= s.pos {
			return nil
		}
		if err != nil {
			return err
		}
		// A replica that lags has answered: there is more.
		select {
		case <-time.After(jslog.RetryPause / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take reads one record.
func (s *scan) take(m *jslog.Record, fold func(o record.Origin, seq uint64, parts []agora.Message) error) error {
	s.pos = m.Seq
	s.count++
	o, n, err := s.r.Open(m.Body)
	if err != nil {
		s.b.cfg.Log.Warn("record skipped", "stream", s.at.Stream, "seq", m.Seq, "err", err)
		return nil
	}
	if _, is := record.Mark(m.Body); is {
		s.purge = true
	}
	if o.Session != s.cfg.Session || o.From != s.cfg.From || o.IsVoid(m.At) {
		return nil
	}
	parts := make([]agora.Message, n)
	for i := range parts {
		parts[i].Seq = m.Seq<<agora.SeqShift | uint64(i)
		if err := s.r.Part(&parts[i]); err != nil {
			s.b.cfg.Log.Warn("record skipped", "stream", s.at.Stream, "seq", m.Seq, "err", err)
			return nil
		}
	}
	s.alive = true
	if m.ID != "" && m.ID == s.id {
		s.hit = m.Seq
	}
	return fold(o, m.Seq, parts)
}

// cut reports whether retention, or an operator, may have taken records that the scan should have seen.
func (s *scan) cut(most int64) bool { return s.count >= most || s.purge }

// aged reports whether all of a stream may have grown too old to be in the log.
func (s *scan) aged(o OpenStream) bool {
	return !o.Since.IsZero() && s.b.Now().Sub(o.Since) >= s.b.cfg.MaxAge-record.VoidAfter
}
