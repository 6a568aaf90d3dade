package scan

import (
	"context"
	"errors"
	"math"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/pause"
)

// LaneScan reads a mailbox behind a fence, for what one session has stored there.
type LaneScan struct {
	Floor uint64 // sequence of the last record of the lane that is known; 0 for none
	ID    string // message id of a record whose fate is unknown
	Hit   uint64 // where the record of unknown fate stands; 0 for nowhere
	Alive bool   // a record of the lane was there
	Torn  func() // called where records may be gone that followed what was folded; nil where what was folded is known to be all up to the Floor

	s       *Scanner
	at      jslog.Location
	from    agora.AgentID
	session string

	count int64  // records that were read, of whomever
	pos   uint64 // sequence of the last one
	purge bool   // something was dropped by hand
	torn  bool   // something was dropped while it was read
	r     record.Reader
}

// NewLaneScan returns a scan of the lane of a session and an addressee, of which nothing is known yet.
func NewLaneScan(s *Scanner, from agora.AgentID, session string, to agora.Address) *LaneScan {
	return &LaneScan{s: s, at: jslog.Locate(to, s.cfg.Shards), from: from, session: session}
}

// Run gives fold every record of the session that is not void, in order, and returns once it has read as far as the
// stream's leader knew after the fence: of the lane nothing is stored behind that, and what others store meanwhile is
// not waited for.
func (l *LaneScan) Run(ctx context.Context, fold func(o record.Origin, seq uint64, parts []agora.Message) error) error {
	l.pos = max(l.Floor, 1) - 1 // the last known record is read again: it shows that nothing after it is gone
	end := uint64(math.MaxUint64)
	for first := true; l.pos < end; first = false {
		p, err := l.s.log.Read(ctx, jslog.Query{Stream: l.at.Stream, Subject: l.at.Log(), Seq: l.pos + 1})
		if err != nil {
			return err
		}
		if torn, err := l.misses(ctx, &p, first); err != nil {
			return err
		} else if torn {
			l.tear()
		}
		for i := range p.Records {
			if err := l.take(&p.Records[i], fold); err != nil {
				return err
			}
		}
		lags := !first && p.Whole && l.pos < end // a replica has answered that does; or what it lacks is gone
		if !first && !lags {
			continue
		}
		now, err := l.end(ctx)
		if err != nil {
			return err
		}
		end = min(end, now)
		if lags && !pause.For(ctx, jslog.RetryPause/10) {
			return ctx.Err()
		}
	}
	return nil
}

// end returns the sequence of the last record there is, as the stream's leader knows it; 0 for none.
func (l *LaneScan) end(ctx context.Context) (uint64, error) {
	last, err := l.s.log.Last(ctx, l.at.Stream, l.at.Log())
	if errors.Is(err, jslog.ErrNone) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return last.Seq, nil
}

// misses reports whether records may be missing between what was read before and a page: the oldest went while the scan
// was at it, of a mailbox that overflows, or where the page before was that of a replica that lags.
func (l *LaneScan) misses(ctx context.Context, p *jslog.Page, first bool) (bool, error) {
	switch {
	case len(p.Records) == 0:
		return false, nil
	case first:
		return l.Torn != nil && l.Floor > 0 && p.Records[0].Seq != l.Floor, nil
	}
	oldest, err := l.s.log.Next(ctx, l.at.Stream, l.at.Log(), 1)
	if errors.Is(err, jslog.ErrNone) {
		return true, nil
	}
	return err == nil && oldest.Seq > l.pos, err
}

// tear notes that records may be missing before those that are read next.
func (l *LaneScan) tear() {
	l.torn, l.Alive = true, false
	if l.Torn != nil {
		l.Torn()
	}
}

// take reads one record.
func (l *LaneScan) take(m *jslog.Record, fold func(o record.Origin, seq uint64, parts []agora.Message) error) error {
	l.pos = m.Seq
	l.count++
	o, n, err := l.r.Open(m.Body)
	if err != nil {
		l.s.cfg.Log.Warn("record skipped", "stream", l.at.Stream, "seq", m.Seq, "err", err)
		return nil
	}
	if _, is := record.Mark(m.Body); is {
		l.purge = true
	}
	if o.Session != l.session || o.From != l.from || o.IsVoid(m.At) {
		return nil
	}
	parts := make([]agora.Message, n)
	for i := range parts {
		parts[i].Seq = m.Seq<<agora.SeqShift | uint64(i)
		if err := l.r.Part(&parts[i]); err != nil {
			l.s.cfg.Log.Warn("record skipped", "stream", l.at.Stream, "seq", m.Seq, "err", err)
			return nil
		}
	}
	l.Alive = true
	if m.ID != "" && m.ID == l.ID {
		l.Hit = m.Seq
	}
	return fold(o, m.Seq, parts)
}

// Cut reports whether retention, or an operator, may have taken records that the scan should have seen.
func (l *LaneScan) Cut() bool { return l.count >= l.s.cfg.MaxRecords || l.purge || l.torn }

// Aged reports whether all of a stream may have grown too old to be in the log.
func (l *LaneScan) Aged(o ledger.OpenStream) bool {
	return !o.Since.IsZero() && l.s.cfg.Clock.Now().Sub(o.Since) >= l.s.cfg.MaxAge-record.VoidAfter
}
