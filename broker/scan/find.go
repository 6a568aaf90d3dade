package scan

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
)

// Search says which messages of the log are looked for.
type Search struct {
	To     agora.Address             // in one mailbox or space; all of To.Tenant where it has no name
	Seq    uint64                    // the one at a position; Match is not asked then
	Match  func(*agora.Message) bool // those for which it is true; it must not keep the message
	Most   int                       // found; then the search ends
	Beyond uint64                    // records of a stream that are looked through at most
}

// Stored is a message of the log, and where it stands.
type Stored struct {
	Message agora.Message // with From, Session and Seq; To is the mailbox or space in which it stands
	Stream  string
	At      time.Time // when the log stored it, by its servers' clock
	Epoch   uint64    // of its sender's claim
	Void    bool      // stored so late that every reader skips it
	Parts   int       // of its record
}

// Finding is what a search brought.
type Finding struct {
	Stored  []Stored
	Records int       // looked through
	Whole   bool      // all that there is was looked through, or enough was found
	Oldest  time.Time // of the records looked through; zero where there were none
}

// Find looks through the log for operators: it reads it all where no address or position is given, some hundred
// thousand records a second at most, and changes nothing. It returns what it has when ctx is over.
func (s *Scanner) Find(ctx context.Context, what Search) (Finding, error) {
	f := finder{s: s, what: what, out: Finding{Whole: true}}
	for _, p := range f.places() {
		if err := f.look(ctx, p); err != nil {
			if ctx.Err() == nil {
				return f.out, jslog.Unavailable(err)
			}
			f.out.Whole = false
		}
		if what.Most > 0 && len(f.out.Stored) >= what.Most {
			break
		}
	}
	return f.out, nil
}

type finder struct {
	s    *Scanner
	what Search
	r    record.Reader
	out  Finding
}

// places returns where to look: streams, and in each a subject that may have wildcards.
func (f *finder) places() []jslog.Location {
	if f.what.To.Name() != "" {
		return []jslog.Location{jslog.Locate(f.what.To, f.s.cfg.Shards)}
	}
	var all []jslog.Location
	for _, shard := range jslog.Shards(f.s.cfg.Shards) {
		all = append(all, shard.AllOf(f.what.To.Tenant))
	}
	return all
}

func (f *finder) look(ctx context.Context, p jslog.Location) error {
	if f.what.Seq > 0 {
		m, err := f.s.log.At(ctx, p.Stream, f.what.Seq>>agora.SeqShift)
		if errors.Is(err, jslog.ErrNone) {
			return nil
		}
		if err != nil {
			return err
		}
		f.take(p.Stream, m)
		return nil
	}
	for seq, read := uint64(1), uint64(0); ; {
		page, err := f.s.log.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log(), Seq: seq})
		if err != nil {
			return err
		}
		for i := range page.Records {
			f.take(p.Stream, &page.Records[i])
			seq = page.Records[i].Seq + 1
		}
		read += uint64(len(page.Records))
		switch {
		case page.Whole || f.what.Most > 0 && len(f.out.Stored) >= f.what.Most:
			return nil
		case f.what.Beyond > 0 && read >= f.what.Beyond:
			f.out.Whole = false
			return nil
		}
	}
}

// take adds what of a record is looked for.
func (f *finder) take(stream string, m *jslog.Record) {
	to, err := jslog.AddressOf(m.Subject)
	if err != nil || to.Tenant != f.what.To.Tenant || f.what.To.Name() != "" && to.Name() != f.what.To.Name() {
		return // a fence, or somebody else's
	}
	f.out.Records++
	if f.out.Oldest.IsZero() || m.At.Before(f.out.Oldest) {
		f.out.Oldest = m.At
	}
	o, n, err := f.r.Open(m.Body)
	if err != nil {
		return
	}
	for k := range n {
		p := agora.Message{From: o.From, Session: o.Session, To: to, Seq: m.Seq<<agora.SeqShift | uint64(k)}
		if f.r.Part(&p) != nil {
			return
		}
		if f.what.Seq > 0 && p.Seq != f.what.Seq || f.what.Seq == 0 && !f.what.Match(&p) || p.Kind == agora.Gap {
			continue
		}
		f.out.Stored = append(f.out.Stored, Stored{Message: p, Stream: stream, At: m.At, Epoch: o.Epoch, Void: o.IsVoid(m.At), Parts: n})
	}
}
