package scan

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/pause"
)

// Unended is a lane in which streams are open, as far as the log was read.
type Unended struct {
	From    agora.AgentID
	Session string
	To      agora.Address
	Epoch   uint64 // the highest of the records read since something was open
}

// mostOpen bounds how many open streams a search has in mind: with more, those it has found are told at once, and what
// ended further on is told as well.
const mostOpen = 1 << 16

// anySubject is all of a stream, fences too, which are passed over: to pick those of its log costs the server three
// times as much where there are thousands of mailboxes.
const anySubject = ">"

// Unended reads the log of all tenants, up to what is there now, and tells visit of lanes in which streams are open of
// which a part was said under a lease that was last good before a time: a batch for each stream of the log, more where
// they are many. A lane may be told more than once. EndLane finds out what is open indeed. It fails as soon as visit
// does, and when the log can't be read; it reads tens of thousands of records a second (BenchmarkUnended), one page at
// a time.
func (s *Scanner) Unended(ctx context.Context, before time.Time, visit func([]Unended) error) error {
	for _, shard := range jslog.Shards(s.cfg.Shards) {
		u := openStreamScan{s: s, before: before.UnixMilli(), visit: visit, most: s.cfg.MostOpen, lanes: map[laneKey]*openLane{}}
		if err := u.run(ctx, shard.Stream()); err != nil {
			return err
		}
	}
	return nil
}

// openStreamScan looks through one stream of the log.
type openStreamScan struct {
	s      *Scanner
	before int64 // Unix milliseconds
	visit  func([]Unended) error
	most   int
	lanes  map[laneKey]*openLane
	open   int // streams in lanes
	r      record.Reader
}

type laneKey struct {
	session string
	to      agora.Address
}

type openLane struct {
	from    agora.AgentID
	epoch   uint64
	streams map[string]struct{}
}

// readInTurn reads a page of the log once it is the Broker's turn: who looks through all of it is in no hurry.
func (s *Scanner) readInTurn(ctx context.Context, q jslog.Query) (jslog.Page, error) {
	defer s.cfg.Turns.Take()()
	return s.log.Read(ctx, q)
}

// run reads what the stream's leader has now: a replica that lags is asked again.
func (u *openStreamScan) run(ctx context.Context, stream string) error {
	end, err := u.s.log.Last(ctx, stream, anySubject)
	if errors.Is(err, jslog.ErrNone) {
		return nil
	}
	if err != nil {
		return jslog.Unavailable(err)
	}
	for seq := uint64(1); seq <= end.Seq; {
		page, err := u.s.readInTurn(ctx, jslog.Query{Stream: stream, Subject: anySubject, Seq: seq})
		if err != nil {
			return jslog.Unavailable(err)
		}
		for i := range page.Records {
			u.take(&page.Records[i])
			seq = page.Records[i].Seq + 1
		}
		if u.open > u.most {
			if err := u.tell(); err != nil {
				return err
			}
		}
		if !page.Whole || seq > end.Seq {
			continue
		}
		if end, err = u.s.log.Last(ctx, stream, anySubject); errors.Is(err, jslog.ErrNone) {
			break // all of it has grown too old meanwhile
		}
		if err != nil || !pause.For(ctx, jslog.RetryPause/10) {
			return jslog.Unavailable(errors.Join(err, ctx.Err()))
		}
	}
	return u.tell()
}

// take follows one record. What can't be read, or is void, is of no stream.
func (u *openStreamScan) take(m *jslog.Record) {
	to, err := jslog.AddressOf(m.Subject)
	if err != nil {
		return
	}
	o, n, err := u.r.Open(m.Body)
	if err != nil || o.IsVoid(m.At) {
		return
	}
	at := laneKey{o.Session, to}
	for range n {
		var p agora.Message
		if u.r.Part(&p) != nil {
			return
		}
		switch {
		case !ledger.IsStreamPart(&p):
		case p.Part.Ends():
			u.end(at, p.Stream)
		case o.ValidAt < u.before:
			u.goOn(at, o.From, p.Stream)
		}
	}
	if l := u.lanes[at]; l != nil {
		l.epoch = max(l.epoch, o.Epoch)
	}
}

// goOn notes that a stream continues.
func (u *openStreamScan) goOn(at laneKey, from agora.AgentID, stream string) {
	l := u.lanes[at]
	if l == nil {
		l = &openLane{from: from, streams: map[string]struct{}{}}
		u.lanes[at] = l
	}
	if _, ok := l.streams[stream]; !ok {
		l.streams[stream] = struct{}{}
		u.open++
	}
}

// end notes that a stream is over.
func (u *openStreamScan) end(at laneKey, stream string) {
	l := u.lanes[at]
	if l == nil {
		return
	}
	if _, ok := l.streams[stream]; ok {
		delete(l.streams, stream)
		u.open--
	}
	if len(l.streams) == 0 {
		delete(u.lanes, at)
	}
}

// tell tells what is open, and forgets it.
func (u *openStreamScan) tell() error {
	all := make([]Unended, 0, len(u.lanes))
	for at, l := range u.lanes {
		all = append(all, Unended{From: l.from, Session: at.session, To: at.to, Epoch: l.epoch})
	}
	clear(u.lanes)
	u.open = 0
	return u.visit(all)
}
