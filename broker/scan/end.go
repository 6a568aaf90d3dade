package scan

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
)

// Lane is a lane that is to be ended.
type Lane struct {
	From    agora.AgentID
	Session string
	Epoch   uint64
	To      agora.Address
	Dirty   uint64              // the highest epoch that ended without handing over; 0 for none
	Open    []ledger.OpenStream // streams that presence knows to be open: asked only where retention has cut the log
}

// End ends a lane permanently: it fences, reads the log and
// stores one Abort (Body is the code, STREAM_ABORTED) for each open stream. Repeating it, at several edges at
// once, is harmless: the younger fence stops the older one's write, and then the reading shows what is stored.
// It fails with ErrDeposed when a younger epoch holds the lane, and with an *agora.Error when the
// log is full or could not be reached before ctx was over.
func End(ctx context.Context, s *Scanner, lane Lane) error {
	e := ender{s: s, lane: lane, at: jslog.Locate(lane.To, s.cfg.Shards)}
	e.fence = e.at.Fence(lane.Session)
	for wait := endPause; ; wait = min(2*wait, endPauseMax) {
		err := e.once(ctx)
		switch {
		case err == nil || errors.Is(err, jslog.ErrDeposed):
			return err
		case errors.Is(err, jslog.ErrFull):
			return jslog.Full()
		}
		if !pause.For(ctx, wait/2+rand.N(wait)) {
			return jslog.Unavailable(errors.Join(err, ctx.Err()))
		}
	}
}

const (
	endPause    = 50 * time.Millisecond // before the log is asked again, growing
	endPauseMax = time.Second
)

// ender ends one lane.
type ender struct {
	s     *Scanner
	lane  Lane
	at    jslog.Location
	fence string
}

// once does it all in one go; errMoved means that another does the same.
func (e *ender) once(ctx context.Context) error {
	seq, err := e.s.log.MoveFence(ctx, e.at.Stream, e.fence, e.lane.Epoch)
	if err != nil {
		return err
	}
	var l ledger.Ledger
	now := time.Now()
	s := NewLaneScan(e.s, e.lane.From, e.lane.Session, e.lane.To)
	s.Torn = l.Tear
	err = s.Run(ctx, func(o record.Origin, _ uint64, parts []agora.Message) error {
		for i := range parts {
			l.Fold(&parts[i], o.Epoch, now)
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.Inherit(ledger.Heritage{Open: e.lane.Open, Dirty: e.lane.Dirty, Cut: s.Cut(), Aged: s.Aged})
	l.BreakAll()
	for l.OwesAborts() {
		if err := e.abort(ctx, &l, seq); err != nil {
			return err
		}
	}
	return nil
}

// abort stores one record of aborts.
func (e *ender) abort(ctx context.Context, l *ledger.Ledger, fence uint64) error {
	o := record.Origin{Session: e.lane.Session, Epoch: e.lane.Epoch, ValidAt: e.s.cfg.Clock.Now().UnixMilli(), From: e.lane.From}
	var aborts []agora.Message
	l.Begin()
	for _, name := range l.NextAborts() {
		aborts = append(aborts, l.Abort(name, e.lane.Epoch))
	}
	m := nats.NewMsg(e.at.Log())
	m.Data = record.Of(o, aborts...)
	m.Header[jslog.MessageID] = []string{e.s.cfg.NewID()}
	if guard.Fences {
		m.Header[jslog.ExpectedLast] = []string{strconv.FormatUint(fence, 10)}
		m.Header[jslog.ExpectedSubject] = []string{e.fence}
	}
	a, err := e.s.log.Publish(ctx, m, e.s.cfg.Retry)
	switch {
	case err != nil: // it may be stored: the next reading tells
		return err
	case a.Fenced():
		return jslog.ErrMoved
	case a.Refused():
		return jslog.ErrFull
	case a.Absent:
		return nats.ErrNoResponders
	case a.Err != nil:
		return a.Err
	}
	e.s.cfg.Stored(e.at, a, len(aborts))
	l.Commit(a.Seq, time.Now(), e.s.cfg.Duplicates)
	return nil
}
