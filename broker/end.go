package broker

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
)

// EndLane ends a lane for good, for whoever ends the session: it fences, reads the log and
// stores one Abort (Body is the code, STREAM_ABORTED) for each open stream. Repeating it, at several edges at
// once, is harmless: the younger fence stops the older one's write, and then the reading shows what is stored.
// It fails with ErrDeposed when a younger epoch holds the lane, and with an *agora.Error when the
// log is full or could not be reached before ctx was over.
func (b *Broker) EndLane(ctx context.Context, cfg LaneConfig) error {
	e := ender{b: b, cfg: cfg, at: jslog.Locate(cfg.To, b.cfg.Shards)}
	e.fence = e.at.Fence(cfg.Session)
	for pause := recoveryPause; ; pause = min(2*pause, recoveryPauseMax) {
		err := e.once(ctx)
		switch {
		case err == nil || errors.Is(err, jslog.ErrDeposed):
			return err
		case errors.Is(err, jslog.ErrFull):
			return jslog.Full()
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return jslog.Unavailable(errors.Join(err, ctx.Err()))
		case <-b.ctx.Done():
			return jslog.Unavailable(errClosed)
		}
	}
}

// ender ends one lane.
type ender struct {
	b     *Broker
	cfg   LaneConfig
	at    jslog.Location
	fence string
}

// once does it all in one go; errMoved means that another does the same.
func (e *ender) once(ctx context.Context) error {
	seq, err := e.b.log.MoveFence(ctx, e.at.Stream, e.fence, e.cfg.Epoch)
	if err != nil {
		return err
	}
	e.b.count.fences.Add(1)
	var l ledger.Ledger
	now := time.Now()
	s := scan{b: e.b, at: e.at, cfg: &e.cfg}
	err = s.run(ctx, func(o record.Origin, _ uint64, parts []agora.Message) error {
		for i := range parts {
			l.Fold(&parts[i], o.Epoch, now)
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.Inherit(ledger.Heritage{Open: e.cfg.Open, Dirty: e.cfg.Dirty, Cut: s.cut(e.b.cfg.MaxRecords), Aged: s.aged})
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
	o := record.Origin{Session: e.cfg.Session, Epoch: e.cfg.Epoch, ValidAt: e.b.Now().UnixMilli(), From: e.cfg.From}
	var aborts []agora.Message
	l.Begin()
	for _, name := range l.NextAborts(maxAborts) {
		aborts = append(aborts, l.Abort(name, e.cfg.Epoch))
	}
	m := nats.NewMsg(e.at.Log())
	m.Data = record.Of(o, aborts...)
	m.Header[jslog.MessageID] = []string{e.b.unique(e.b.next.Add(1))}
	if guard.Fences {
		m.Header[jslog.ExpectedLast] = []string{strconv.FormatUint(fence, 10)}
		m.Header[jslog.ExpectedSubject] = []string{e.fence}
	}
	a, err := e.b.log.Publish(ctx, m, e.b.cfg.Retry)
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
	e.b.tails.note(e.at, a.Seq, time.Now())
	e.b.count.records.Add(1)
	e.b.count.parts.Add(uint64(len(aborts)))
	l.Commit(aborts, a.Seq, time.Now(), e.b.cfg.Duplicates)
	return nil
}
