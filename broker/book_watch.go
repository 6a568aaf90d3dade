package broker

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora/broker/jslog"
)

// BookReader hears what stands in the book. The goroutine of Watch calls its functions, one at a time, and they
// should not block.
type BookReader struct {
	// Entry gets each record from the beginning, in order, and then as they come; it may get one twice. Of two that
	// open the same name, or decide the same, the first stands, until Gone reports it gone, which it does before Entry
	// gets a record that was stored later.
	Entry func(Entry)
	// Gone reports that nothing stands any more below first: it was kept long enough, or somebody has
	// deleted it.
	Gone func(first uint64)
	// Read reports, after each look into the log, up to which Seq Entry has got all, or why that is not known now.
	Read func(upTo uint64, err error)
}

// bookWatch is one reading of the book.
type bookWatch struct {
	k       *Book
	r       BookReader
	created time.Time
	first   uint64 // nothing stands below it
	pos     uint64 // told up to here
	hinted  uint64 // what a hint has spoken of
}

const (
	hintFor     = 2 * time.Second // how long what a hint has spoken of is looked for, again and again
	hintPause   = 50 * time.Millisecond
	bookPatient = 2 * time.Second
)

// Watch tells r what stands in the book until ctx is over, or the Broker closed: it returns why. Records are found at
// once by a hint of the one who stores them, and within a second or two where none comes. It continues after the
// connection, a leader or the whole stream was lost. It needs no consumer at the server.
func (k *Book) Watch(ctx context.Context, r BookReader) error {
	hints := make(chan *nats.Msg, 64) // one that finds no room is as good as those that do
	sub, err := k.b.nc.ChanSubscribe(jslog.BookHint, hints)
	if err != nil {
		return jslog.Unavailable(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	w := &bookWatch{k: k, r: r}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var until time.Time // for as long something is looked for that a hint has spoken of
	for {
		select {
		case m := <-hints:
			if seq, err := strconv.ParseUint(string(m.Data), 10, 64); err == nil && seq > w.hinted {
				w.hinted, until = seq, time.Now().Add(hintFor)
			}
			if w.pos >= w.hinted {
				continue
			}
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-k.b.ctx.Done():
			return jslog.Unavailable(errClosed)
		}
		w.look(ctx)
		wait := k.b.cfg.Probe
		if w.pos < w.hinted && time.Now().Before(until) {
			wait = hintPause
		}
		timer.Reset(wait)
	}
}

// look reads what there is, and says how that went.
func (w *bookWatch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, bookPatient)
	defer cancel()
	if err := w.read(ctx); err != nil {
		w.r.Read(w.pos, jslog.Unavailable(err))
		return
	}
	w.r.Read(w.pos, nil)
}

func (w *bookWatch) read(ctx context.Context) error {
	b, stream := w.k.b, jslog.StreamName(jslog.BookKind, "")
	s, err := b.log.State(ctx, stream, "")
	if err != nil {
		b.watchers.nobody(stream)
		return err
	}
	if !w.created.IsZero() && !s.Created.Equal(w.created) {
		w.anew(&s)
	}
	w.created = s.Created
	b.streams.note(stream, streamSeen{last: s.Last, created: s.Created, life: b.Life()})
	w.forget(s.First)
	for w.pos < s.Last {
		if err := w.page(ctx, stream, &s); err != nil {
			return err
		}
	}
	return nil
}

// anew forgets all that the stream before this one held, unless an edge has made this one: then its sequences begin
// above the old ones.
func (w *bookWatch) anew(s *jslog.State) {
	if s.First <= w.pos {
		w.r.Gone(math.MaxUint64)
		w.first, w.pos = 0, 0
	}
}

func (w *bookWatch) forget(first uint64) {
	if first > w.first {
		w.first, w.pos = first, max(w.pos, first-1)
		w.r.Gone(first)
	}
}

// page tells of the next records. What a replica has not got yet is read from the leader, one by one.
func (w *bookWatch) page(ctx context.Context, stream string, s *jslog.State) error {
	b := w.k.b
	p, err := b.log.Read(ctx, jslog.Query{Stream: stream, Subject: jslog.BookPrefix + ">", Seq: w.pos + 1})
	if err != nil {
		return err
	}
	for i := range p.Records {
		if p.Records[i].Seq > s.Last { // what was forgotten before it is not known yet
			w.pos = s.Last
			return nil
		}
		w.tell(&p.Records[i])
	}
	if !p.Whole || w.pos >= s.Last {
		return nil
	}
	m, err := b.log.Next(ctx, stream, jslog.BookPrefix+">", w.pos+1)
	if err == nil && m.Seq > s.Last {
		w.pos = s.Last
		return nil
	}
	if err == nil {
		w.tell(m)
		return nil
	}
	if !errors.Is(err, jslog.ErrNone) {
		return err
	}
	// There is nothing, if it was the same leader that said so: another one may not know yet.
	again, err := b.log.State(ctx, stream, "")
	switch {
	case err != nil:
		return err
	case again.Leader != s.Leader || !again.Created.Equal(s.Created):
		return jslog.ErrSilent
	}
	w.pos = s.Last
	return nil
}

func (w *bookWatch) tell(m *jslog.Record) {
	w.pos = m.Seq
	e, err := parseEntry(m)
	if err != nil {
		w.k.b.cfg.Log.Warn("record skipped", "stream", jslog.StreamName(jslog.BookKind, ""), "seq", m.Seq, "err", err)
		return
	}
	w.r.Entry(e)
}
